"""What one innocent debug line does to a GPU, shown on a machine that has none.

    python examples/software_gpu/one_debug_line.py [--steps 10] [--profile v100] [--clock deterministic]

It runs the same training loop four times: as it should be; with the loss read at every step; with the norms of all
gradients, computed by NumPy; and with these norms computed on the device, so that four numbers come back instead of
64 MiB. Counts and bytes are exact. Times are modelled from the profile's figures and the real time of the Python code.
The bus is so much slower than the device's memory that the norms cost nine tenths of its time on any machine; where
NumPy is slow, they cost more. With `--clock deterministic` the host's Python takes no time at all, and the table is the
same everywhere.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from stoker import software_gpu

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

_UNITS, _BATCH = 2048, 32


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else "")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--profile", default="v100", choices=sorted(software_gpu.PROFILES))
    parser.add_argument("--clock", default="real", choices=("real", "deterministic"))
    args = parser.parse_args()
    software_gpu.enable(memory="2GiB", profile=args.profile, clock=args.clock)

    step, batch = training_step()
    norms_on_the_device = compiled_norms()
    norms_on_the_device(step(batch)[1])  # traced once, outside of the measurements
    variants: dict[str, Callable[[Any, Any], object]] = {
        "no debug line": lambda loss, gradients: None,
        "float(loss)": lambda loss, gradients: float(loss),
        "norms of all gradients": lambda loss, gradients: [np.linalg.norm(g) for g in gradients],
        "the same on the device": lambda loss, gradients: norms_on_the_device(gradients).numpy(),
    }
    report([quietest(name, look, step, batch, args.steps) for name, look in variants.items()], args.profile)


def training_step() -> tuple[Any, Any]:
    """Four dense layers of 2,048 units and gradient descent; weights and batch are on the device."""
    import tensorflow as tf

    scale = _UNITS**-0.5
    weights = [
        tf.Variable(tf.random.stateless_normal([_UNITS, _UNITS], [i, 7], stddev=scale)) for i in range(4)
    ]

    @tf.function  # type: ignore[untyped-decorator]
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            for w in weights:
                x = tf.nn.relu(x @ w)
            loss = tf.reduce_mean(tf.square(x - 1.0))
        gradients = tape.gradient(loss, weights)
        for w, gradient in zip(weights, gradients, strict=True):
            w.assign_sub(0.1 * gradient)
        return loss, gradients

    return step, tf.random.stateless_uniform([_BATCH, _UNITS], [1, 2])


def compiled_norms() -> Any:
    """The repair: the same four numbers, computed where the gradients are."""
    import tensorflow as tf

    return tf.function(lambda gradients: tf.stack([tf.norm(gradient) for gradient in gradients]))


def quietest(
    name: str, look: Callable[[Any, Any], object], step: Any, batch: Any, steps: int
) -> tuple[str, software_gpu.Counters, int]:
    """The fastest of three measurements: whatever else the machine does only ever adds to the host's time."""
    found = [measure(name, look, step, batch, steps) for _ in range(3)]
    return min(found, key=lambda row: row[1].wall_s)


def measure(
    name: str, look: Callable[[Any, Any], object], step: Any, batch: Any, steps: int
) -> tuple[str, software_gpu.Counters, int]:
    import tensorflow as tf

    software_gpu.reset()
    losses = []
    for _ in range(steps):
        loss, gradients = step(batch)
        look(loss, gradients)
        losses.append(loss)
    tf.stack(losses).numpy()  # all losses in one read, after the loop
    return name, software_gpu.counters(), steps


def report(rows: list[tuple[str, software_gpu.Counters, int]], profile: str) -> None:
    print(f"\nThe same loop on a software GPU, profile {profile} (times are modelled)\n")
    heads = ("busy", "ms/step", "slower", "syncs", "MiB read", "us a read")
    print(f"{'debug line':26}" + "".join(f"{head:>10}" for head in heads))
    base = rows[0][1].wall_s
    for name, counters, steps in rows:
        device = counters.devices[0]
        extra = max(device.d2h.count - 1, 0)  # less the one read after the loop
        each = device.d2h.seconds / device.d2h.count * 1e6 if extra else 0.0
        milliseconds, slower = counters.wall_s / steps * 1e3, counters.wall_s / base
        print(
            f"{name:26}{device.busy:10.1%}{milliseconds:10.2f}{slower:9.1f}x"
            f"{device.syncs:10d}{device.d2h.bytes / 2**20:10.1f}{each:10.0f}"
        )
    print(
        "\nTo get a value the host waits until the device has finished; the device then waits for the host to hand it"
        "\nthe next step: after a copy, and after whatever NumPy does with it on one core."
    )


if __name__ == "__main__":
    main()
