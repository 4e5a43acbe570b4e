"""What `soak_faults.py` launches: a small training that counts its rows and leaves a note at each epoch.

Each epoch begins when there is a file `go.EPOCH`. Other files make one worker misbehave: `slow.RANK` delays its start
by as many seconds as it says, `leave.RANK` makes it leave with exit code 3.
"""

import hashlib
import json
import os
import sys
import threading
import time
from pathlib import Path

RANK, RESTART = (os.environ[f"STOKER_{name}"] for name in ("RANK", "RESTART"))
Path(f"pid.{RESTART}.{RANK}").write_text(str(os.getpid()))
slow = Path(f"slow.{RANK}")
if slow.exists():
    time.sleep(float(slow.read_text()))
    slow.unlink()

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import stoker  # noqa: E402

ROWS, BATCH = 12 * 1500 + 7, 12
strategy = stoker.strategy()
keras.utils.set_random_seed(1)
x = np.random.default_rng(0).normal(size=(ROWS, 16)).astype("float32")
y = np.stack([x[:, 0] * x[:, 1], np.arange(ROWS)], 1).astype("float32")


class RowsNotSeenOnce(keras.metrics.Metric):
    """How many rows of the epoch were not seen exactly once."""

    def __init__(self):
        super().__init__(name="wrong_rows")
        self.counts = self.add_variable((ROWS,), "zeros", name="counts")

    def update_state(self, y, prediction, sample_weight=None):
        seen = tf.reduce_sum(tf.one_hot(tf.cast(y[:, 1], tf.int32), ROWS), 0)
        self.counts.assign(self.counts + seen)

    def result(self):
        return tf.reduce_sum(tf.cast(tf.not_equal(tf.convert_to_tensor(self.counts), 1.0), tf.float32))


class Notes(keras.callbacks.Callback):
    """Says how far the job is, and waits until the next epoch may begin."""

    def on_epoch_begin(self, epoch, logs=None):
        Path(f"epoch.{RESTART}").write_text(str(epoch))
        while not Path(f"go.{epoch}").exists():
            time.sleep(0.01)


def leave_when_asked():
    """On a thread of its own: Stoker calls callbacks on the chief alone."""
    while not Path(f"leave.{RANK}").exists():
        time.sleep(0.01)
    Path(f"leave.{RANK}").unlink()
    os._exit(3)


threading.Thread(target=leave_when_asked, daemon=True).start()
with strategy.scope():
    model = keras.Sequential(
        [
            keras.Input((16,)),
            keras.layers.Dense(32, activation="tanh"),
            keras.layers.Dropout(0.2),
            keras.layers.Dense(1),
        ]
    )
    model.compile(
        keras.optimizers.Adam(0.01), lambda y, p: tf.square(y[:, :1] - p), metrics=[RowsNotSeenOnce()]
    )
history = stoker.fit(
    model,
    x,
    y,
    batch_size=BATCH,
    epochs=int(sys.argv[1]),
    verbose=0,
    callbacks=[Notes()],
    checkpoint=stoker.Checkpoint("run", every="300ms"),
)
weights = b"".join(one.numpy().tobytes() for one in model.weights)
ending = {"bits": hashlib.sha256(weights).hexdigest(), "history": history.history}
Path(f"end.{RANK}").write_text(json.dumps(ending))
