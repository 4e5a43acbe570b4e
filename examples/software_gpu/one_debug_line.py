"""One innocent debug line, and what it does to a GPU: shown on a machine that has none.

    python examples/software_gpu/one_debug_line.py [--steps 10] [--profile t4]

The same training loop four times: as it should be; with the loss printed at every step; with a look at a
large gradient at every step; and with that look taken on the device, so that one number comes back instead of
16 MiB. Counts and bytes are exact. Times are modelled, from the profile's figures and the real time of the
Python code.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

from stoker import software_gpu

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--profile", default="t4", choices=sorted(software_gpu.PROFILES))
    args = parser.parse_args()
    software_gpu.enable(memory="2GiB", profile=args.profile)

    step, batch = training_step()
    step(batch)  # traced once, outside of the measurements
    variants: dict[str, Callable[[Any, Any], object]] = {
        "no debug line": lambda loss, gradient: None,
        "float(loss)": lambda loss, gradient: float(loss),
        "np.abs(gradient).max()": look_on_the_host,
        "float(reduce_max(...))": look_on_the_device,
    }
    report([quietest(name, look, step, batch, args.steps) for name, look in variants.items()], args.profile)


def training_step() -> tuple[Any, Any]:
    """Three dense layers of 2,048 units and gradient descent; weights and batch are on the device."""
    import tensorflow as tf

    weights = [tf.Variable(tf.random.stateless_normal([2048, 2048], [i, 7], stddev=0.02)) for i in range(3)]

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            for w in weights:
                x = tf.nn.relu(x @ w)
            loss = tf.reduce_mean(tf.square(x - 1.0))
        gradients = tape.gradient(loss, weights)
        for w, gradient in zip(weights, gradients, strict=True):
            w.assign_sub(0.1 * gradient)
        return loss, gradients[0]

    return step, tf.random.stateless_uniform([512, 2048], [1, 2])


def look_on_the_host(loss: Any, gradient: Any) -> object:
    import numpy as np

    return np.abs(gradient).max()  # brings the whole gradient to the host


def look_on_the_device(loss: Any, gradient: Any) -> object:
    import tensorflow as tf

    return float(tf.reduce_max(tf.abs(gradient)))  # the same number, computed where the data is


def quietest(
    name: str, look: Callable[[Any, Any], object], step: Any, batch: Any, steps: int
) -> tuple[str, software_gpu.Counters, int]:
    """The faster of two measurements: whatever else the machine does only ever adds to the host's time."""
    both = [measure(name, look, step, batch, steps) for _ in range(2)]
    return min(both, key=lambda row: row[1].wall_s)


def measure(
    name: str, look: Callable[[Any, Any], object], step: Any, batch: Any, steps: int
) -> tuple[str, software_gpu.Counters, int]:
    import tensorflow as tf

    software_gpu.reset()
    losses = []
    for _ in range(steps):
        loss, gradient = step(batch)
        look(loss, gradient)
        losses.append(loss)
    tf.stack(losses).numpy()  # all losses in one read, after the loop
    return name, software_gpu.counters(), steps


def report(rows: list[tuple[str, software_gpu.Counters, int]], profile: str) -> None:
    print(f"\nThe same loop on a software GPU, profile {profile} (times are modelled)\n")
    heads = ("busy", "ms/step", "slower", "syncs", "MiB read", "us a read")
    print(f"{'debug line':24}" + "".join(f"{head:>10}" for head in heads))
    base = rows[0][1].wall_s
    for name, counters, steps in rows:
        device = counters.devices[0]
        extra = max(device.d2h.count - 1, 0)  # less the one read after the loop
        each = device.d2h.seconds / device.d2h.count * 1e6 if extra else 0.0
        milliseconds, slower = counters.wall_s / steps * 1e3, counters.wall_s / base - 1
        print(
            f"{name:24}{device.busy:10.1%}{milliseconds:10.2f}{slower:10.1%}"
            f"{device.syncs:10d}{device.d2h.bytes / 2**20:10.1f}{each:10.0f}"
        )
    print(
        "\nA scalar is small, but to get it the host waits until the device has finished, and the device then"
        "\nwaits for the host to hand it the next step. A large tensor costs that and the copy besides."
    )


if __name__ == "__main__":
    main()
