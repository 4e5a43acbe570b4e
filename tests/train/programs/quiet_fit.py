"""`stoker.fit` and a `stoker.Trainer` on a software GPU under a guard: how often the host reads.

Facts as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from stoker.doctor import software_gpu

software_gpu.enable(count=2, memory="1GiB")

import keras  # noqa: E402
import numpy as np  # noqa: E402

import stoker  # noqa: E402

ROWS, BATCH = 640, 8


def model() -> Any:
    keras.utils.set_random_seed(0)
    made = keras.Sequential([keras.Input([8]), keras.layers.Dense(4), keras.layers.Dense(1)])
    made.compile("adam", "mse", metrics=["mae"], jit_compile=False)
    return made


def reads(fit: Any, epochs: int, rows: int) -> dict[str, int]:
    """What `epochs` epochs of a model that was trained before cost in reads and copies."""
    x = np.random.RandomState(0).rand(rows, 8).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    made = model()
    fit(made, x, y, 1)
    software_gpu.reset()
    with stoker.guard(action="record", syncs=None, copies=None, retraces=None) as report:
        fit(made, x, y, epochs)
    counted = software_gpu.counters()
    return {
        "d2h": counted.d2h.count,
        "reads": report.syncs + report.framework_syncs,
        "retraces": report.retraces,
        "steps": int(made.optimizer.iterations) - rows // BATCH,
    }


def ours(made: Any, x: Any, y: Any, epochs: int) -> None:
    stoker.fit(made, x, y, BATCH, epochs, verbose=0, plan={"steps_per_call": 1000})


def theirs(made: Any, x: Any, y: Any, epochs: int) -> None:
    made.fit(x, y, BATCH, epochs, verbose=0)


def step(model: Any, batch: Any) -> Any:
    x, y = batch
    return keras.losses.mean_squared_error(y, model(x, training=True))


class OwnStep:
    """Trains the model it is given with one trainer, however often it is called."""

    def __init__(self) -> None:
        self.trainer: Any = None

    def __call__(self, made: Any, x: Any, y: Any, epochs: int) -> None:
        # Everything that looks at a step: its gradients, its loss, its weights.
        options: dict[str, Any] = {"clip": stoker.Clip(global_norm=1.0), "ema": 0.9, "stop_on_nan": True}
        self.trainer = self.trainer or stoker.Trainer(made, made.optimizer, step, **options)
        self.trainer.fit(x, y, BATCH, epochs, verbose=0, plan={"steps_per_call": 1000})


def halted() -> dict[str, Any]:
    """A trainer meets a batch of NaN: its weights and slots, and those of one that saw only what came before."""
    x = np.random.RandomState(0).rand(ROWS, 8).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    broken = x.copy()
    broken[30 * BATCH :] = np.nan
    ends = []
    for rows in (broken, x[: 30 * BATCH]):
        made = model()
        trainer = stoker.Trainer(made, made.optimizer, step, ema=0.9)
        trainer.fit(rows, y[: len(rows)], BATCH, shuffle=False, verbose=0)
        ends.append([variable.numpy().tolist() for variable in (*made.weights, *made.optimizer.variables)])
    return {"updates": int(made.optimizer.iterations), "same": ends[0] == ends[1]}


def mirrored() -> dict[str, Any]:
    """A model on both devices against one on a single device: how far apart they end, and the copies among them."""
    x = np.random.RandomState(0).rand(ROWS - 3, 8).astype("float32")
    y = x.sum(axis=1, keepdims=True)
    strategy = stoker.strategy()
    with strategy.scope():
        two = model()
    one = model()
    histories = [stoker.fit(made, x, y, BATCH, 2, verbose=0).history for made in (two, one)]
    pairs = [(left.value.values, right.numpy()) for left, right in zip(two.weights, one.weights, strict=True)]
    return {
        "devices": sorted({copy.device[-5:] for copies, _ in pairs for copy in copies}),
        "apart": max(float(np.abs(copies[0].numpy() - end).max()) for copies, end in pairs),
        "copies": all((copies[0].numpy() == copies[1].numpy()).all() for copies, _ in pairs),
        "history": [history["mae"] for history in histories],
    }


def main() -> None:
    facts = {
        "short": reads(ours, 2, ROWS),
        "long": reads(ours, 2, 4 * ROWS),
        "trainer short": reads(OwnStep(), 2, ROWS),
        "trainer long": reads(OwnStep(), 2, 4 * ROWS),
        "keras": reads(theirs, 2, ROWS),
        "halted": halted(),
        "mirrored": mirrored(),
    }
    json.dump(facts, sys.stdout)
    print()


if __name__ == "__main__":
    main()
