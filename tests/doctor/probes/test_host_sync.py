"""Every way a tensor's value reaches Python or NumPy is seen, at the right line; what is no read is not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from stoker.doctor.probes.session import Session

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")
np = pytest.importorskip("numpy")


class Things:
    """What the ways read."""

    def __init__(self) -> None:
        self.vector = tf.constant([1.0, 2.0, 3.0])
        self.scalar = tf.constant(2.0)
        self.index = tf.constant(1)
        self.half = tf.cast(self.vector, tf.bfloat16)
        self.variable = tf.Variable([1.0, 2.0])
        self.number = tf.Variable(3.0)
        self.keras_variable = keras.Variable(1.0)
        self.metric = keras.metrics.Mean()
        self.metric.update_state(3.0)
        self.optimizer = keras.optimizers.Adam()
        self.optimizer.build([self.keras_variable])
        self.array = np.zeros(3)


def while_tensor(t: Things) -> None:
    count = t.index
    while count < 2:
        count = count + 1


def set_item(t: Things) -> None:
    t.array[0] = t.scalar


def set_all(t: Things) -> None:
    t.array[:] = t.vector


READS: dict[str, Callable[[Things], Any]] = {
    ".numpy()": lambda t: t.vector.numpy(),
    "float": lambda t: float(t.scalar),
    "int": lambda t: int(t.scalar),
    "bool": lambda t: bool(t.scalar),
    "if": lambda t: 1 if t.scalar else 0,
    "while": while_tensor,
    "min": lambda t: min(t.scalar, t.scalar),
    "max": lambda t: max(t.scalar, t.scalar),
    "f-string": lambda t: f"{t.scalar}",
    "f-string with format": lambda t: f"{t.scalar:.3f}",
    "percent": lambda t: "%f" % t.scalar,  # noqa: UP031
    "str": lambda t: str(t.vector),
    "repr": lambda t: repr(t.vector),
    "iteration": lambda t: list(t.vector),
    "list index": lambda t: [1, 2, 3][t.index],
    "range": lambda t: range(t.index),
    "np.mean": lambda t: np.mean(t.vector),
    "np.asarray": lambda t: np.asarray(t.vector),
    "np.array": lambda t: np.array(t.vector),
    "np.stack": lambda t: np.stack([t.vector, t.vector]),
    "np.asarray of bfloat16": lambda t: np.asarray(t.half),
    "array[i] = t": set_item,
    "array[:] = t": set_all,
    "memoryview": lambda t: memoryview(t.vector),
    "dlpack": lambda t: tf.experimental.dlpack.to_dlpack(t.vector),
    "variable.numpy()": lambda t: t.variable.numpy(),
    "float(variable)": lambda t: float(t.number),
    "metric.result()": lambda t: float(t.metric.result()),
    "optimizer.iterations": lambda t: int(t.optimizer.iterations),
    "keras convert_to_numpy": lambda t: keras.ops.convert_to_numpy(t.vector),
    "keras variable": lambda t: t.keras_variable.numpy(),
}

NO_READS: dict[str, Callable[[Things], Any]] = {
    "len": lambda t: len(t.vector),
    "shape": lambda t: t.vector.shape,
    "slice": lambda t: t.vector[1:],
    "arithmetic": lambda t: t.vector * 2.0,
    "ndarray + tensor": lambda t: np.ones(3, np.float32) + t.vector,
    "compare": lambda t: t.vector == t.vector,
    "constant": lambda t: tf.constant([1.0, 2.0]),
    "gradient": lambda t: gradient(t),
    "step % 100 on the device": lambda t: t.optimizer.iterations % 100 == 0,
}


def gradient(t: Things) -> Any:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(t.variable * 2.0)
    return tape.gradient(loss, t.variable)


def syncs(session: Session) -> dict[int, int]:
    """Reads by line of this file."""
    tallies = session.recorder.tallies.get("sync", {})
    return {line: tally.count for (file, line, _), tally in tallies.items() if file == __file__}


@pytest.mark.parametrize("way", READS)
def test_a_read_is_counted_at_its_line(session: Session, way: str) -> None:
    things, read = Things(), READS[way]
    session.recorder.tallies.clear()
    first, last = read.__code__.co_firstlineno, max(n for *_, n in read.__code__.co_lines() if n)
    for _ in range(5):
        read(things)
    seen = syncs(session)
    assert seen, way
    assert all(first <= line <= last for line in seen)
    assert sum(seen.values()) % 5 == 0


@pytest.mark.parametrize("way", NO_READS)
def test_what_is_no_read_is_not_counted(session: Session, way: str) -> None:
    things, act = Things(), NO_READS[way]
    session.recorder.tallies.clear()
    act(things)
    assert syncs(session) == {}


def test_bytes_shape_and_type_are_told(session: Session) -> None:
    tensor = tf.zeros([16, 4])
    for _ in range(3):
        np.mean(tensor)
    tallies = session.recorder.tallies["sync"]
    ((_, tally),) = tallies.items()
    assert (tally.count, tally.bytes) == (3, 3 * 16 * 4 * 4)
    assert tally.detail == {"how": "buffer", "shape": [16, 4], "dtype": "float32"}


def test_waiting_for_an_asynchronous_executor_is_told_apart(session: Session) -> None:
    step = tf.function(lambda x: tf.linalg.matmul(x, x))
    x = tf.random.normal([600, 600])
    step(x)
    context = pytest.importorskip("tensorflow.python.eager.context")
    with context.execution_mode(context.ASYNC):
        for _ in range(5):
            y = step(x)
        session.recorder.tallies.clear()
        y.numpy()
    ((_, tally),) = session.recorder.tallies["sync"].items()
    assert tally.wait_ns == tally.ns > 0


def test_another_threads_read_is_tallied_off_the_books(session: Session) -> None:
    tensor = tf.constant([1.0, 2.0])
    before = session.recorder.read_balances()[0]

    def work() -> None:
        for _ in range(4):
            tensor.numpy()

    session.recorder.tallies.clear()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert sum(syncs(session).values()) == 4
    assert before[4] == session.recorder.read_balances()[0][4]


def test_the_types_are_exactly_as_before_after_detach() -> None:
    from tensorflow.python.framework import ops

    from stoker import clock
    from stoker.doctor.attach.buffer_slot import buffer_slot

    def state() -> tuple[dict[str, Any], int | None]:
        return dict(vars(ops.EagerTensor)), buffer_slot(ops.EagerTensor).value

    before = state()
    session = Session(clock.now_ns())
    session.attach_now()
    assert state() != before
    session.detach()
    assert state() == before
    assert float(np.mean(tf.constant([1.0, 3.0]))) == 2.0


def test_a_fault_of_ours_disables_the_probe_and_nothing_else(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    with monkeypatch.context() as patch:
        patch.setattr(session.recorder, "tally", broken)
        assert float(tf.constant(3.0)) == 3.0
        assert float(tf.constant(4.0)) == 4.0
    assert len(session.recorder.notes) == 1
    assert (
        "the host sync probe failed and was disabled (RuntimeError: broken on purpose)"
        in session.recorder.notes[0]
    )
    session.recorder.notes.clear()
