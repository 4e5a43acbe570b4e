"""Pauses in measuring: exact steps, counts per step, every second on an account, and nothing heavy missed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker import clock
from stoker.doctor.probes import pauses
from stoker.doctor.probes.measurements import Books
from stoker.doctor.probes.parts.eager import EagerPart
from stoker.doctor.probes.parts.functions import CallsPart, TracesPart
from stoker.doctor.probes.parts.input import InputPart
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.probes.parts.steps import StepsPart
from stoker.doctor.probes.parts.tallies import ReadsPart
from stoker.doctor.probes.recorder import CHECKPOINT, HEAVY_NS, INPUT, PAUSED, PYTHON
from stoker.doctor.probes.session import Session

tf: Any = pytest.importorskip("tensorflow")
keras: Any = pytest.importorskip("keras")
np = pytest.importorskip("numpy")

# More steps than it takes until measuring pauses, even if the machine interrupts the program now and then.
ENOUGH = 20_000


@pytest.fixture
def pausing(session: Session, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session that pauses after a few steps, whatever they take, and until it is told to go on."""
    for name in ("_FIRST_NS", "_STRETCH_NS", "_WORTH"):
        monkeypatch.setattr(pauses, name, 0)
    monkeypatch.setattr(pauses, "_LONG_STEP_NS", 10**12)
    # The heartbeat does not run here, so the profiler never takes its turn.
    monkeypatch.setattr(session.windows, "wants_turn", lambda: False)
    session.pauses.enable()
    yield session
    session.pauses.end_pause()


def drive(session: Session, step: Callable[[], object], turns: int = 3, length: int = 100) -> int:
    """Step through so many pauses of at least so many steps; returns how many steps that took."""
    done = paused = 0
    while turns:
        step()
        done += 1
        assert done < ENOUGH, "measuring never paused"
        paused = paused + 1 if session.recorder.in_pause else 0
        if paused == length:
            turns -= 1
            # What the heartbeat does when a pause has been long enough.
            session.recorder.is_due = True
    return done


def assert_balanced(session: Session) -> None:
    totals, now = session.recorder.read_balances()
    assert sum(totals) == now - session.recorder.start_ns
    assert min(totals) >= 0


@tf.function
def update(weight: Any, batch: Any) -> Any:
    loss = tf.reduce_sum(weight * batch)
    weight.assign_sub(0.01 * batch)
    return loss


class Loop:
    """A step of the user's own loop: the next batch, a compiled update, a read."""

    def __init__(self) -> None:
        self.weight = tf.Variable(tf.ones([4]))
        self.batches = iter(tf.data.Dataset.from_tensors(tf.ones([4])).repeat())

    def __call__(self) -> None:
        float(update(self.weight, next(self.batches)))


def test_counts_of_a_loop_go_through_pauses(pausing: Session) -> None:
    done = drive(pausing, Loop())
    measured = pausing.measurements(ended=True)
    (function,) = [f for f in measured[CallsPart].functions if f.name == "update"]
    (pipeline,) = measured[InputPart].pipelines
    assert (measured[StepsPart].count, function.calls, pipeline.elements) == (done, done, done)
    (reads,) = measured[ReadsPart].by_site.values()
    # The read of a step comes after the call that begins or ends a pause.
    assert abs(reads.count - done) <= 6
    assert measured[Books].estimated_ns > 0
    assert_balanced(pausing)


def test_patches_on_ops_and_reads_are_out_in_a_pause(pausing: Session) -> None:
    from tensorflow.python import pywrap_tfe

    step = Loop()
    tensor_type = type(step.weight.value())
    while_measured = (pywrap_tfe.TFE_Py_FastPathExecute, tensor_type._numpy_internal)
    drive(pausing, step, turns=1, length=1)
    assert pausing.recorder.top == PAUSED
    assert pywrap_tfe.TFE_Py_FastPathExecute is not while_measured[0]
    assert tensor_type._numpy_internal is not while_measured[1]
    step()
    assert not pausing.recorder.in_pause
    assert while_measured == (pywrap_tfe.TFE_Py_FastPathExecute, tensor_type._numpy_internal)


def test_eager_ops_and_tapes_go_through_pauses(pausing: Session) -> None:
    weight = tf.Variable(2.0)

    def step() -> None:
        with tf.GradientTape() as tape:
            loss = weight * weight
        weight.assign_sub(0.01 * tape.gradient(loss, weight))

    step()
    before = pausing.eager.count
    step()
    ops = pausing.eager.count - before
    done = drive(pausing, step) + 2
    measured = pausing.measurements(ended=True)
    (tapes,) = measured[EagerPart].tapes.values()
    assert measured[StepsPart].count + 1 >= done
    assert tapes.count == done
    assert abs(measured[EagerPart].ops - before - (done - 1) * ops) <= 3 * ops
    assert_balanced(pausing)


class Pausing(keras.callbacks.Callback):
    """Ends a pause after some batches, and notes how many pauses there were."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session, self.pauses, self.batches = session, 0, 0

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        self.batches = self.batches + 1 if self.session.recorder.in_pause else 0
        if self.batches == 40:
            self.pauses += 1
            self.session.recorder.is_due = True


@pytest.mark.slow
@pytest.mark.parametrize("several", [1, 4])
def test_batches_and_callbacks_of_fit_go_through_pauses(pausing: Session, several: int) -> None:
    model = keras.Sequential([keras.layers.Input([4]), keras.layers.Dense(1)])
    model.compile("sgd", "mse", steps_per_execution=several)
    x = np.ones([2 * 333, 4], np.float32)
    callback = Pausing(pausing)
    model.fit(x, x[:, :1], batch_size=2, epochs=4 * several, verbose=0, callbacks=[callback])
    assert callback.pauses
    assert not pausing.recorder.in_pause
    measured = pausing.measurements(ended=True)
    assert measured[StepsPart].count == 333 * 4 * several
    (hook,) = [c for c in measured[KerasPart].callbacks if c.hook == "on_train_batch_end"]
    calls = 4 * several * -(-333 // several)
    assert abs(hook.calls - calls) <= 2 * callback.pauses
    (fit,) = measured[KerasPart].fits.values()
    assert fit.graph_ns > 0
    assert_balanced(pausing)


def test_a_new_trace_ends_the_pause_and_is_counted(pausing: Session) -> None:
    weight, rows = tf.Variable(0.0), [tf.ones([2]), tf.ones([3])]

    @tf.function
    def add(batch: Any) -> None:
        weight.assign_add(tf.reduce_sum(batch))

    def step() -> None:
        add(rows[0])

    drive(pausing, step, turns=1, length=10)
    pausing.recorder.is_due = False
    add(rows[1])
    assert not pausing.recorder.in_pause
    (traced,) = [f for f in pausing.measurements()[TracesPart].functions if f.name == "add"]
    assert (traced.traces, traced.retraces) == (2, 1)


def test_a_function_that_is_new_ends_the_pause(pausing: Session) -> None:
    drive(pausing, Loop(), turns=1, length=10)
    pausing.recorder.is_due = False
    other = tf.function(lambda: tf.constant(1.0))
    other()
    assert not pausing.recorder.in_pause
    assert [f.calls for f in pausing.measurements()[CallsPart].functions][-1] == 1


def test_a_checkpoint_in_a_pause_is_measured(pausing: Session, tmp_path: Path) -> None:
    step = Loop()
    saver = tf.train.Checkpoint(weight=step.weight)
    drive(pausing, step, turns=1, length=10)
    pausing.recorder.is_due = False
    before = pausing.recorder.totals[CHECKPOINT]
    saver.write(str(tmp_path / "saved"))
    assert pausing.recorder.in_pause
    assert pausing.recorder.totals[CHECKPOINT] > before
    (saved,) = pausing.recorder.tallies_of("checkpoint").values()
    assert saved.count == 1
    assert_balanced(pausing)


def test_a_long_wait_for_input_is_measured_in_a_pause(pausing: Session) -> None:
    slow = threading.Event()

    def rows() -> Iterator[Any]:
        while True:
            if slow.is_set():
                slow.clear()
                time.sleep(2 * HEAVY_NS / 1e9)
            yield np.ones([4], np.float32)

    step = Loop()
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    data = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([4]))
    step.batches = iter(data.with_options(options))
    drive(pausing, step, turns=1, length=10)
    pausing.recorder.is_due = False
    pausing.recorder.heavy_ns = HEAVY_NS
    before = pausing.recorder.totals[INPUT]
    slow.set()
    for _ in range(8):
        step()
    assert pausing.recorder.in_pause
    assert pausing.recorder.totals[INPUT] - before >= HEAVY_NS
    assert_balanced(pausing)


def test_a_program_that_stops_stepping_is_not_taken_to_step(
    pausing: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Loop()
    drive(pausing, step, turns=1, length=10)
    pausing.recorder.is_due = False
    pausing.pauses.bring_up_to_date(ended=False)
    steps, (before, _) = pausing.measurements()[StepsPart].count, pausing.recorder.read_balances()
    now = clock.now_ns
    monkeypatch.setattr(clock, "now_ns", lambda: now() + 10**10)
    pausing.pauses.poll()
    after, _ = pausing.recorder.read_balances()
    assert pausing.measurements()[StepsPart].count == steps
    assert after[PYTHON] - before[PYTHON] >= 9 * 10**9
    assert_balanced(pausing)
    # Whatever comes next is measured again, not only the next step.
    tf.ones([2]) + 1.0
    assert not pausing.recorder.in_pause


def test_long_steps_are_measured_without_pauses(session: Session) -> None:
    session.windows.wants_turn = lambda: False  # type: ignore[method-assign]
    session.pauses.enable()
    now = clock.now_ns
    offset = 0

    def later() -> int:
        return now() + offset

    step = Loop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "now_ns", later)
        for _ in range(100):
            step()
            offset += 10**8
            assert not session.recorder.in_pause
    assert session.measurements()[StepsPart].count == 100


def test_a_fault_ends_the_pauses_and_nothing_else(pausing: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down(*_: object) -> None:
        raise RuntimeError("broken")

    step = Loop()
    drive(pausing, step, turns=1, length=10)
    monkeypatch.setattr(pausing.pauses, "_extend", break_down)
    for _ in range(100):
        step()
    assert not pausing.recorder.in_pause
    assert pausing.recorder.notes == [
        "the pauses probe failed and was disabled (RuntimeError: broken); its figures stop there"
    ]
    pausing.recorder.notes.clear()
    assert_balanced(pausing)
