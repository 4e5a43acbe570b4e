"""Experiments in a program that goes on: prices are measured, and all that comes later is the same to the bit."""

from __future__ import annotations

import asyncio
import hashlib
import random
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import stoker
from stoker.doctor.attach.sites import Sites
from stoker.doctor.experiments import laboratory, recording
from stoker.doctor.measure.run import MeasuredRun
from stoker.doctor.measure.step_experiments import are_other_threads_idle, is_idle, is_of_kernel
from stoker.records import Record
from stoker.tracking.store import inherited
from tests.support import wait_until

tf = pytest.importorskip("tensorflow")
keras: Any = pytest.importorskip("keras")
np = pytest.importorskip("numpy")


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def _alone() -> None:
    """Repairs are timed only when no other thread may be at work: those of tests before this one end first."""
    wait_until(lambda: are_other_threads_idle(Sites()))


class Program:
    """All that a program may remember from step to step: variables, optimizers, random numbers of every kind, input."""

    def __init__(self) -> None:
        keras.utils.set_random_seed(7)
        layers = keras.layers
        self.model = keras.Sequential(
            [keras.Input([6]), layers.Dense(16, "relu"), layers.Dropout(0.4), layers.BatchNormalization()]
        )
        self.head = keras.Sequential([keras.Input([16]), layers.Dense(1)])
        self.optimizer = keras.optimizers.Adam(0.01)
        self.generator = tf.random.Generator.from_seed(3)
        self.rows = tf.data.Dataset.range(10_000).shuffle(500, seed=1).batch(8)
        self.elements = iter(self.rows)
        self.weight = tf.Variable(1.0)
        self.learn = tf.function(self.shrink)
        # Its state is in no variable.
        self.draw = tf.function(lambda: tf.random.normal([8, 6], seed=4))
        self.seen: list[bytes] = []

    def shrink(self, rate: Any) -> None:
        self.weight.assign_sub(rate * self.weight)

    def train_step(self, features: Any) -> Any:
        noise = tf.random.normal(tf.shape(features), seed=5) + tf.random.uniform(tf.shape(features))
        with tf.GradientTape() as tape:
            hidden = self.model(features + 0.1 * noise, training=True)
            error = self.head(hidden) - tf.reduce_sum(features, 1, keepdims=True)
            loss = tf.reduce_mean(tf.square(error))
        weights = [*self.model.trainable_variables, *self.head.trainable_variables]
        self.optimizer.apply(tape.gradient(loss, weights), weights)
        return loss

    def run_steps(self, count: int) -> None:
        for step in range(count):
            numbers = next(self.elements)
            batch = tf.constant(np.random.rand(8, 6).astype("float32") + random.random())
            batch = (
                batch
                + tf.cast(numbers, tf.float32)[:, None] / 1e4
                + self.generator.normal([8, 6])
                + self.draw()
            )
            loss = self.train_step(batch)
            self.learn(0.01 / (1 + step))
            guess = self.head.predict(np.ones([1, 16], "float32"), verbose=0)
            self.seen += [numbers.numpy().tobytes(), np.asarray(loss).tobytes(), guess.tobytes()]

    def digest(self) -> str:
        state = [v.numpy().tobytes() for v in (*self.model.variables, *self.head.variables, self.weight)]
        optimizer = [np.asarray(v).tobytes() for v in self.optimizer.variables]
        return hashlib.sha256(b"".join([*self.seen, *state, *optimizer])).hexdigest()


def run_measured(
    body: Callable[[], None], seconds: float | None, announced: bool = False
) -> tuple[Record, MeasuredRun]:
    run = MeasuredRun.here("cell")
    run.record_steps(seconds, announced)
    run.begin()
    try:
        body()
    except BaseException:
        run.abandon()
        raise
    return run.end(exit_code=0), run


def outcome_of(seconds: float) -> tuple[Record, str, str]:
    """The record of some steps, what they came to, and what those came to that followed."""
    program = Program()
    record, _ = run_measured(lambda: program.run_steps(50), seconds)
    then = program.digest()
    program.run_steps(8)
    return record, then, program.digest()


@pytest.mark.slow
def test_prices_are_measured_and_what_follows_is_the_same_to_the_bit() -> None:
    without, then, later = outcome_of(0.0)
    assert without.tables.experiments == []
    with_them, then_too, later_too = outcome_of(600.0)
    assert (then, later) == (then_too, later_too)
    rows = {row.kind: row for row in with_them.tables.experiments}
    timed = {kind for kind, row in rows.items() if row.repaired_s}
    assert {"eager-train-step", "predict-in-loop", "retrace-python-arg"} <= timed
    prices = {finding.kind: finding.what_if for finding in with_them.findings}
    price = prices["eager-train-step"]
    assert price is not None
    assert price.basis == "measured"
    assert with_them.notes == []


def read_in_loop() -> None:
    weight = tf.Variable(tf.ones([4]))
    for _ in range(60):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight * weight)
        weight.assign_sub(0.01 * tape.gradient(loss, weight))


@pytest.mark.parametrize(
    ("number", "announced", "reaches"),
    [(signal.SIGTERM, True, True), (signal.SIGINT, True, False), (signal.SIGINT, False, True)],
)
def test_a_signal_skips_the_rest_and_reaches_the_program_unless_it_was_for_us(
    number: signal.Signals, announced: bool, reaches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[float] = []

    def interrupt(finding: object, experiment: object, steps: object, budget: Any) -> None:
        signal.raise_signal(number)
        left.append(budget.left_s)

    monkeypatch.setattr(laboratory, "_time", interrupt)
    received: list[int] = []
    before = signal.signal(number, lambda got, frame: received.append(got))
    try:
        record, _ = run_measured(read_in_loop, 300.0, announced)
    finally:
        signal.signal(number, before)
    assert {row.failed for row in record.tables.experiments} == {"there was no time for it"}
    assert set(left) == {0.0}
    assert bool(received) is reaches


def test_nothing_is_timed_while_another_thread_is_at_work_or_stoker_run_measures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stop = threading.Event()
    worker = threading.Thread(target=lambda: stop.wait())
    worker.start()
    try:
        record, _ = run_measured(read_in_loop, 300.0)
        assert not are_other_threads_idle(Sites())
    finally:
        stop.set()
        worker.join()
    assert record.findings
    assert record.tables.experiments == []
    assert record.notes == ["prices are modelled: another thread of the program was still at work"]
    monkeypatch.setattr(inherited, "run", "20260101-000000")
    record, _ = run_measured(read_in_loop, 300.0)
    assert record.tables.experiments == []


def test_a_record_says_that_no_step_could_be_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "_MAX_OPS", 2)
    record, _ = run_measured(read_in_loop, 300.0)
    assert record.findings
    assert record.notes == [
        "prices are modelled: no step was recorded (there were too few, or one was too large)"
    ]
    without, _ = run_measured(read_in_loop, 0.0)
    assert without.notes == []


def test_a_fault_is_a_note_and_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(laboratory, "run_experiments", fail)
    record, _ = run_measured(read_in_loop, 300.0)
    assert record.notes == [
        "repairs could not be timed (RuntimeError: broken on purpose); prices are modelled"
    ]
    assert record.findings


def test_a_thread_of_the_notebooks_kernel_is_told_by_its_packages() -> None:
    waiting = threading.Event()
    code = compile("def wait(event):\n    event.wait()\n", threading.__file__, "exec")
    namespaces: list[dict[str, Any]] = [{"__name__": "ipykernel.iostream"}, {"__name__": "uvicorn.server"}]
    threads = []
    for names in namespaces:
        exec(code, names)
        threads.append(threading.Thread(target=names["wait"], args=(waiting,), daemon=True))
    for thread in threads:
        thread.start()
    wait_until(lambda: is_of_kernel(threads[0], Sites()))
    assert not is_of_kernel(threads[1], Sites())
    waiting.set()
    for thread in threads:
        thread.join()


def test_threads_of_libraries_that_wait_are_idle_and_those_at_work_are_not() -> None:
    sites, loop = Sites(), asyncio.new_event_loop()
    looping = threading.Thread(target=loop.run_forever)
    working, go_on = threading.Event(), threading.Event()

    def work() -> None:
        working.set()
        go_on.wait()

    looping.start()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        (pooled,) = pool._threads
        wait_until(lambda: is_idle(looping, sites) and is_idle(pooled, sites))
        pool.submit(work)
        working.wait()
        assert not is_idle(pooled, sites)
        go_on.set()
    loop.call_soon_threadsafe(loop.stop)
    looping.join()
    loop.close()


def test_a_guard_around_it_hears_nothing_and_inside_another_run_nothing_is_timed() -> None:
    with stoker.guard(action="record") as guard:
        record, _ = run_measured(read_in_loop, 300.0)
    assert any(row.repaired_s for row in record.tables.experiments)
    assert guard.counts["syncs"] == guard.counts["retraces"] == 0
    inner: list[Record] = []
    outer, _ = run_measured(lambda: inner.append(run_measured(read_in_loop, 300.0)[0]), 0.0)
    assert inner[0].findings
    assert inner[0].tables.experiments == outer.tables.experiments == []
