"""A training killed with SIGKILL at fifty random moments: it ends with the bits of one that was left alone.

    make soak-resume
    python benchmarks/soak_resume.py --kills 10 --seed 3

One call of `stoker.fit` with shuffled rows, Dropout, BatchNorm, Adam under a schedule, validation, callbacks that
remember and a checkpoint several times a second. A third of the kills come at any moment since the start (importing,
tracing, restoring), a third at any moment after something new was saved, a third while a file is being written.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

PROGRAM = """
import hashlib, json, sys
from pathlib import Path
import keras, numpy as np, stoker
from stoker.train.variables import named_variables

directory, epochs = Path(sys.argv[1]), int(sys.argv[2])
keras.utils.set_random_seed(1)
numbers = np.random.default_rng(0)
x = numbers.normal(size=(4096, 64)).astype(np.float32)
y = (x[:, :1] * x[:, 1:2] > 0).astype(np.float32)
model = keras.Sequential([
    keras.Input((64,)),
    keras.layers.Dense(512, activation="relu"),
    keras.layers.BatchNormalization(),
    keras.layers.Dropout(0.3),
    keras.layers.Dense(512, activation="relu"),
    keras.layers.Dense(1, activation="sigmoid"),
])
schedule = keras.optimizers.schedules.CosineDecay(0.003, 128 * epochs)
model.compile(keras.optimizers.Adam(schedule), "binary_crossentropy", metrics=["accuracy"])
history = stoker.fit(
    model, x, y, batch_size=32, epochs=epochs, verbose=0, validation_data=(x[:512], y[:512]), plan="16",
    callbacks=[
        keras.callbacks.CSVLogger(directory / "log.csv"),
        keras.callbacks.EarlyStopping("loss", patience=1000, restore_best_weights=True),
    ],
    checkpoint=stoker.Checkpoint(directory / "checkpoints", every="150ms"),
)
digest = hashlib.sha256()
for name, variable in named_variables(model).items():
    digest.update(name.encode() + variable.numpy().tobytes())
end = {"state": digest.hexdigest(), "history": history.history, "log": (directory / "log.csv").read_text()}
(directory / "end.json").write_text(json.dumps(end))
"""

MOMENTS = ("at any moment", "after a save", "during a save")


class Training:
    """One process of the training."""

    def __init__(self, directory: Path, epochs: int) -> None:
        self._checkpoints = directory / "checkpoints"
        self._before = self._newest()
        command = [sys.executable, "-c", PROGRAM, str(directory), str(epochs)]
        self._said = directory / "stderr.txt"
        with self._said.open("w") as said:
            # One place for both trainings, so that what one measured and remembered holds for the other.
            self.process = subprocess.Popen(command, stderr=said, cwd=directory.parent)

    def _newest(self) -> str:
        return max((path.name for path in self._checkpoints.glob("*.stoker")), default="")

    def ended(self) -> bool:
        code = self.process.poll()
        if code:
            sys.exit(f"the training failed with exit code {code}\n{self._said.read_text()[-3000:]}")
        return code is not None

    def saved(self) -> bool:
        return self._newest() != self._before

    def is_saving(self) -> bool:
        return any(self._checkpoints.glob("*.partial"))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def killed(training: Training, kind: str, delay: float) -> bool:
    """Kill it at such a moment; False if it ended before."""
    since = time.monotonic() if kind == "at any moment" else None
    while not training.ended():
        if since is None and training.saved():
            since = time.monotonic()
        if (
            since is not None
            and time.monotonic() - since > delay
            and (kind != "during a save" or training.is_saving())
        ):
            training.kill()
            return True
        time.sleep(0.0005)
    return False


def left_alone(directory: Path, epochs: int) -> tuple[dict[str, object], float, float]:
    """How it ends, how long it takes until it saves, and how long it trains after that."""
    begin = time.monotonic()
    training = Training(directory, epochs)
    while not training.saved() and not training.ended():
        time.sleep(0.01)
    first = time.monotonic()
    training.process.wait()
    training.ended()
    end: dict[str, object] = json.loads((directory / "end.json").read_text())
    return end, first - begin, time.monotonic() - first


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    moments, counts, half_written = random.Random(args.seed), Counter[str](), 0
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        whole, cut = Path(place, "whole"), Path(place, "cut")
        whole.mkdir()
        cut.mkdir()
        expected, start_s, train_s = left_alone(whole, args.epochs)
        for number in range(args.kills):
            kind = MOMENTS[number % 3]
            # Together the processes must not train to the end before the last kill.
            share = train_s / args.kills
            delay = moments.uniform(0, start_s + share if kind == "at any moment" else share)
            if not killed(Training(cut, args.epochs), kind, delay):
                sys.exit(f"it ended before kill {number + 1}: give more --epochs")
            counts[kind] += 1
            half_written += any(Path(cut, "checkpoints").glob("*.partial"))
        resumed = Training(cut, args.epochs)
        resumed.process.wait()
        resumed.ended()
        actual = json.loads((cut / "end.json").read_text())
    different = [what for what, value in expected.items() if actual[what] != value]
    shown = ", ".join(f"{counts[kind]} {kind}" for kind in MOMENTS)
    verdict = f"DIFFERENT {', '.join(different)}" if different else "bit-identical"
    minutes = (time.monotonic() - begin) / 60
    print(
        f"{args.kills} kills ({shown}; {half_written} left a half-written file), {minutes:.1f} min: "
        f"weights, optimizer, metrics, history and log {verdict}"
    )
    if different:
        sys.exit(1)


if __name__ == "__main__":
    main()
