"""A job that trains with batches in parts: a worker killed within an epoch costs no bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.launch.support import launch, read_notes

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

# An epoch has 21 steps, and the first checkpoint is due after 8. Once it is written, worker 1 dies. It does not begin a
# second epoch before.
PROGRAM = """
import hashlib, threading
import keras, numpy as np, stoker

dies = rank == 1 and restart == 0 and sys.argv[1:] == ["die"]
strategy = stoker.strategy()
keras.utils.set_random_seed(5)
with strategy.scope():
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((4,)), layers.Dense(8, activation="tanh"), layers.Dropout(0.2), layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])

class Stay(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        if dies:
            threading.Event().wait()

def die():
    while not (found := sorted(pathlib.Path("run").glob("*.stoker"))):
        time.sleep(0.001)
    note("died", found[-1].name)
    os.kill(os.getpid(), signal.SIGKILL)

if dies:
    threading.Thread(target=die, daemon=True).start()
x = np.random.default_rng(1).normal(size=(242, 4)).astype("float32")
history = stoker.fit(
    model, x, x[:, :1] * x[:, 1:2], batch_size=12, epochs=3, verbose=0,
    plan={"parts": 3, "steps_per_call": 4}, callbacks=[Stay()],
    checkpoint=stoker.Checkpoint("run", every=8),
)
values = [one.numpy().tobytes() for one in (*model.weights, *model.optimizer.variables)]
bits = hashlib.sha256(b"".join(values)).hexdigest()
note("end", json.dumps([bits, history.history, history.plan.parts]))
"""


def test_a_worker_killed_within_an_epoch_of_batches_in_parts_costs_no_bit(tmp_path: Path) -> None:
    ends = []
    for words in ((), ("die",)):
        directory = tmp_path / "-".join(("run", *words))
        directory.mkdir()
        outcome = launch(directory, PROGRAM, "-n", "2", arguments=words)
        assert outcome.code == 0, outcome.stderr
        ends.append(read_notes(directory, "end"))
        died = read_notes(directory, "died")
    step = int(died[0, 1].removesuffix(".stoker").rpartition("-")[2])
    assert 0 < step < 21, "worker 1 was killed behind the first epoch: the test proves nothing"
    whole, cut = ends
    assert set(whole) == {(0, 0), (0, 1)}
    assert set(cut) == {(1, 0), (1, 1)}
    (end,) = {*whole.values(), *cut.values()}
    assert end.endswith(", 3]")
