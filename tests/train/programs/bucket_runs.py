"""Trains with its checkpoints in a bucket, in one process after another, until one of them comes to the end.

    python -m tests.train.programs.bucket_runs URL DIRECTORY

Somebody kills them: the number of each is in DIRECTORY/pid. They are forked before TensorFlow has started: each is a
real one that dies of a real SIGKILL, without the seconds that importing takes. Every other process finds an empty disk,
as on a new machine. DIRECTORY/end.json says how the training ended.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import traceback
from pathlib import Path

MOST = 100


def train(where: str) -> dict[str, object]:
    """How the training ended."""
    import keras
    import numpy as np

    import stoker

    keras.utils.set_random_seed(1)
    x = np.random.default_rng(0).normal(size=(960, 8)).astype(np.float32)
    y = (x[:, :1] > 0).astype(np.float32)
    layers = [keras.Input((8,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dropout(0.2)]
    model = keras.Sequential([*layers, keras.layers.Dense(1, activation="sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])

    class Patience(keras.callbacks.Callback):
        """Waits for the upload of each epoch: how many there are does not depend on how busy the machine is."""

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            for thread in threading.enumerate():
                if thread.name == "stoker-checkpoint":
                    thread.join()

    checkpoint = stoker.Checkpoint(where, every=40, keep=2)
    history = stoker.fit(
        model, x, y, batch_size=16, epochs=20, verbose=0, checkpoint=checkpoint, callbacks=[Patience()]
    )
    weights = b"".join(one.numpy().tobytes() for one in model.weights)
    return {"bits": hashlib.sha256(weights).hexdigest(), "history": history.history}


def run_child(url: str, directory: Path, number: int) -> None:
    """Train in this process and end it."""
    os.environ["STOKER_CACHE_DIR"] = str(directory / f"disk-{number // 2}")
    code = 1
    try:
        unfinished = directory / "pid.new"
        unfinished.write_text(str(os.getpid()))
        unfinished.rename(directory / "pid")
        (directory / "end.json").write_text(json.dumps(train(url)))
        code = 0
    finally:
        if code:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Start processes until one ends by itself."""
    url, directory = sys.argv[1], Path(sys.argv[2])
    import keras  # noqa: F401 - once for all processes

    import stoker.train.fit  # noqa: F401

    for number in range(MOST):
        process = os.fork()
        if not process:
            run_child(url, directory, number)
        code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        if code == 0:
            return
        if code > 0:
            sys.exit("the training failed")
    sys.exit("no process came to the end")


if __name__ == "__main__":
    main()
