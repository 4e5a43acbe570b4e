"""Experiments under `stoker run`: prices that were measured, and a program that notices nothing."""

from __future__ import annotations

import dataclasses
import gc
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stoker.doctor.experiments import laboratory
from stoker.doctor.experiments.recorded_step import RecordedStep
from stoker.doctor.experiments.timing import ExperimentBudget
from stoker.records import ExperimentRow, Finding, Record, SteppingRow
from tests.samples import sample_finding, sample_record
from tests.support import (
    HANGS_S,
    Outcome,
    before_ledger,
    environment,
    last_record,
    run,
    run_plain,
    write_program,
)

pytest.importorskip("tensorflow")

EAGER = """
import atexit, hashlib, pathlib, sys
import tensorflow as tf
tf.keras.utils.set_random_seed(7)
model = tf.keras.Sequential([tf.keras.Input((20,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(0.01)
x, y = tf.random.normal([32, 20]), tf.random.normal([32, 1])

def train_step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss

def say_goodbye():
    digest = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest()
    pathlib.Path("weights").write_text(digest)
    print("weights", digest)

atexit.register(say_goodbye)
for step in range(60):
    loss = train_step()
    if step % 20 == 0:
        print(step, float(loss))
"""


@pytest.fixture(scope="module")
def plain_eager(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What EAGER does by itself; what tests add to it prints nothing and changes no weights."""
    directory = tmp_path_factory.mktemp("plain")
    write_program(directory, EAGER)
    outcome = run_plain(directory, "train.py")
    assert outcome.code == 0
    assert (directory / "weights").read_text() in outcome.stdout
    return outcome


def run_experiments(directory: Path, *options: str) -> Outcome:
    """`stoker run` with time enough for experiments on any machine."""
    command = [sys.executable, "-m", "stoker", "run", "--experiments", "300s", *options, "train.py"]
    outcome = run(command, directory)
    outcome.record = last_record(directory)
    return outcome


def experiments_of(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.record is not None
    rows: list[dict[str, Any]] = outcome.record["tables"]["experiments"]
    return rows


def price_of(outcome: Outcome, kind: str) -> dict[str, Any]:
    assert outcome.record is not None
    (found,) = [finding["what_if"] for finding in outcome.record["findings"] if finding["kind"] == kind]
    price: dict[str, Any] = found
    return price


@pytest.mark.slow
def test_an_eager_step_is_timed_as_a_graph_and_the_program_notices_nothing(
    tmp_path: Path, plain_eager: Outcome
) -> None:
    write_program(tmp_path, EAGER + "sys.exit(3)\n")
    measured = run_experiments(tmp_path)
    assert (measured.code, measured.stdout) == (3, plain_eager.stdout)
    assert before_ledger(measured.stderr) == plain_eager.stderr.rstrip("\n")
    assert plain_eager.stdout.endswith(f"weights {(tmp_path / 'weights').read_text()}\n")
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "weights", ".stoker"}
    (row,) = experiments_of(measured)
    assert (row["kind"], row["function"]) == ("eager-train-step", "train_step")
    assert len(row["repaired_s"]) == len(row["was_s"]) >= 3
    price = price_of(measured, "eager-train-step")
    assert price["basis"] == "measured"
    assert 1 <= price["low"] <= price["speedup"] <= price["high"]
    assert ", measured" in measured.stderr
    assert "timing the repairs" in measured.stderr
    assert measured.record is not None
    assert measured.record["what_if"]["all"]["basis"] == "measured"
    assert measured.record["notes"] == []


@pytest.mark.slow
def test_without_experiments_the_price_is_modelled_and_nothing_is_said(tmp_path: Path) -> None:
    write_program(tmp_path, EAGER)
    measured = run_experiments(tmp_path, "--experiments", "off")
    assert experiments_of(measured) == []
    assert price_of(measured, "eager-train-step")["basis"] == "modelled"
    assert ", modelled" in measured.stderr
    assert "timing the repairs" not in measured.stderr


@pytest.mark.slow
def test_a_program_that_crashes_is_left_alone(tmp_path: Path) -> None:
    write_program(tmp_path, EAGER + "raise RuntimeError('boom')")
    plain, measured = run_plain(tmp_path, "train.py"), run_experiments(tmp_path)
    assert (measured.code, measured.stdout) == (plain.code, plain.stdout)
    assert before_ledger(measured.stderr) == plain.stderr.rstrip("\n")
    assert experiments_of(measured) == []


def test_a_program_with_a_thread_still_at_work_is_left_alone(tmp_path: Path, plain_eager: Outcome) -> None:
    end = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()"
    write_program(tmp_path, EAGER + end)
    measured = run_experiments(tmp_path)
    assert (measured.code, measured.stdout) == (plain_eager.code, plain_eager.stdout)
    assert before_ledger(measured.stderr) == plain_eager.stderr.rstrip("\n")
    assert experiments_of(measured) == []


IDLE = """
import threading
# As the thread that watches progress bars: a library's, waiting for its next turn.
source = "import threading\\ndef watch():\\n    threading.Event().wait()\\n"
library = {"__name__": "watcher"}
exec(compile(source, threading.__file__, "exec"), library)
watcher = threading.Thread(target=library["watch"], daemon=True)
watcher.start()
# Until it waits.
while sys._current_frames()[watcher.ident].f_code.co_name != "wait":
    pass
"""


def test_a_librarys_thread_that_waits_does_not_keep_experiments_from_running(
    tmp_path: Path, plain_eager: Outcome
) -> None:
    write_program(tmp_path, EAGER + IDLE)
    measured = run_experiments(tmp_path)
    assert (measured.code, measured.stdout) == (plain_eager.code, plain_eager.stdout)
    assert price_of(measured, "eager-train-step")["basis"] == "measured"


BESIDE = """
import tensorflow as tf
tf.keras.utils.set_random_seed(7)
model = tf.keras.Sequential([tf.keras.Input((20,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
x, y = tf.random.normal([640, 20]), tf.random.normal([640, 1])

def train_step(rows, labels):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(rows, training=True) - labels))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)

for step in range(80):
    place = step % 20 * 32
    train_step(x[place : place + 32], y[place : place + 32])
"""


def test_what_runs_beside_the_step_is_told_from_it_by_marked_steps(tmp_path: Path) -> None:
    write_program(tmp_path, BESIDE)
    measured = run_experiments(tmp_path)
    row = next(row for row in experiments_of(measured) if row["kind"] == "eager-train-step")
    assert len(row["own_s"]) == len(row["step_s"]) >= 4
    assert all(own < step for own, step in zip(row["own_s"], row["step_s"], strict=True))
    assert row["mean_s"] > 0
    price = price_of(measured, "eager-train-step")
    shares = sorted(own / step for own, step in zip(row["own_s"], row["step_s"], strict=True))
    # Of the mean step, which on a busy machine takes up to half as long again as the marked ones.
    assert shares[0] * 0.5 <= price["share"] <= shares[-1]


TINY = """
import tensorflow as tf
weights = tf.Variable(tf.zeros([10, 1]))
x = tf.ones([16, 10])

@tf.function
def train_step():
    error = tf.matmul(x, weights) - 1.0
    weights.assign_sub(0.01 * tf.matmul(x, error, transpose_a=True))

step = 0
while step < 3000:
    train_step()
    step += 1
"""
SIMULATION = """
import tensorflow as tf
place, speed = tf.Variable(tf.random.stateless_normal([10, 3], [5, 6])), tf.Variable(tf.zeros([10, 3]))

def move():
    force = tf.zeros_like(place)
    for shift in (1, 2, 3, 4):
        way = tf.roll(place, shift, 0) - place
        force += way * (tf.norm(way, axis=-1, keepdims=True) - 0.5)
    speed.assign(0.99 * speed + 0.01 * force)
    place.assign_add(0.01 * speed)

for step in range(500):
    move()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("program", "steps"), [(TINY, 3000), (SIMULATION, 500)], ids=["calls", "updates"])
def test_a_loop_of_small_steps_is_launch_bound_and_its_repair_is_timed(
    tmp_path: Path, program: str, steps: int
) -> None:
    write_program(tmp_path, program)
    measured = run_experiments(tmp_path)
    assert measured.record is not None
    assert measured.record["steps"] == steps
    price = price_of(measured, "launch-bound")
    assert price["basis"] == "measured"
    assert price["speedup"] > 1.2


BROKEN = """
from stoker.doctor.experiments import trials
def break_down(step, finding):
    raise RuntimeError("broken on purpose")
trials.TRIALS["function-as-graph"] = trials.TRIALS["line-as-graph"] = break_down
"""


@pytest.mark.slow
def test_a_fault_in_an_experiment_is_a_word_and_no_more(tmp_path: Path, plain_eager: Outcome) -> None:
    write_program(tmp_path, EAGER + BROKEN)
    measured = run_experiments(tmp_path)
    assert (measured.code, measured.stdout) == (plain_eager.code, plain_eager.stdout)
    assert before_ledger(measured.stderr) == plain_eager.stderr.rstrip("\n")
    (row,) = experiments_of(measured)
    assert row["failed"] == "RuntimeError: broken on purpose"
    assert price_of(measured, "eager-train-step")["basis"] == "modelled"


# Stays in the first experiment until the signal has come.
WAITING = """
import os, time
from stoker.doctor.experiments import laboratory
def wait_for_signal(finding, experiment, steps, budget):
    print("timing", os.getpid(), flush=True)
    # Not `signal.pause`: the signal may come before it.
    while not budget._skipped.is_set():
        time.sleep(0.01)
    return None
laboratory._time = wait_for_signal
"""


@pytest.mark.slow
def test_ctrl_c_skips_experiments_and_the_program_ends_as_it_did(tmp_path: Path) -> None:
    write_program(tmp_path, EAGER + WAITING + "sys.exit(4)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "stoker", "run", "train.py"],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout is not None
    child = next(int(line.split()[1]) for line in process.stdout if line.startswith("timing"))
    os.kill(child, signal.SIGINT)
    process.communicate(timeout=HANGS_S)
    assert process.returncode == 4
    record = last_record(tmp_path)
    assert record is not None
    assert record["exit_code"] == 4
    assert [row["failed"] for row in record["tables"]["experiments"]] == ["there was no time for it"]


def test_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    outcome = run([sys.executable, "-m", "stoker", "run", "--experiments", "soon", "train.py"], tmp_path)
    assert outcome.code == 2
    assert "'soon' is not a time: use 60s, 2m, or off" in outcome.stderr
    assert not json.dumps(outcome.stdout).strip('"')


AGENT = """
import sys
import numpy as np
import tensorflow as tf
tf.keras.utils.set_random_seed(7)
# Its warning of retraces holds an address.
tf.get_logger().setLevel("ERROR")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(16, "relu"), tf.keras.layers.Dense(2)])
weight = tf.Variable(1.0)

@tf.function
def learn(rate):
    return weight.assign_sub(rate * weight)

state = np.ones(4)
for step in range(45):
    action = int(np.argmax(model.predict(state[None].astype(np.float32), verbose=0)))
    for _ in range(50):
        state = state + 0.001 * np.array([state[1], action - 0.5, state[3], -state[2]])
    learn(0.01 / (1 + step))
print(state, float(weight))
sys.exit(5)
"""


@pytest.mark.slow
def test_an_agent_that_predicts_and_retraces_is_timed_and_notices_nothing(tmp_path: Path) -> None:
    write_program(tmp_path, AGENT)
    plain, measured = run_plain(tmp_path, "train.py"), run_experiments(tmp_path)
    assert (measured.code, measured.stdout) == (plain.code, plain.stdout)
    assert measured.code == 5
    assert before_ledger(measured.stderr) == plain.stderr.rstrip("\n")
    rows = {row["kind"]: row for row in experiments_of(measured)}
    for kind in ("predict-in-loop", "retrace-python-arg"):
        assert rows[kind].get("failed", "") == ""
        assert len(rows[kind]["repaired_s"]) >= 3
        # Only the run tells what they took.
        assert rows[kind]["was_s"] == []
        assert price_of(measured, kind)["basis"] == "measured"
    assert measured.record is not None
    assert measured.record["what_if"]["all"]["basis"] == "measured"
    assert measured.record["notes"] == []


def stepping_record(*findings: Finding, wall_s: float = 6.0) -> Record:
    record = dataclasses.replace(sample_record(), findings=list(findings), wall_s=wall_s)
    phase = SteppingRow(seconds=5.0, steps=50, accounts={})
    return dataclasses.replace(record, tables=dataclasses.replace(record.tables, stepping=[phase]))


@pytest.mark.parametrize(
    ("wall_s", "asked_s", "given_s"),
    [(6.0, None, 2.0), (19.0, None, 2.0), (50.0, None, 5.0), (3600.0, None, 20.0), (3600.0, 60.0, 60.0)],
)
def test_experiments_may_take_a_tenth_of_the_run_within_limits(
    wall_s: float, asked_s: float | None, given_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laboratory, "_run_one", lambda *_: (ExperimentRow(kind="any"), frozenset()))
    record = stepping_record(sample_finding(kind="eager-train-step", lost_s=1.0), wall_s=wall_s)
    announced: list[float] = []
    terms = laboratory.ExperimentTerms(asked_s, announced.append)
    laboratory.run_experiments(record, [RecordedStep(None)], terms)
    # The processor's clock has been running since.
    assert [round(seconds, 1) for seconds in announced] == [given_s]


def test_experiments_that_only_bound_a_price_come_last_and_take_nothing_from_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[tuple[str, float]] = []

    def note(
        finding: Finding, experiment: str, steps: object, budget: ExperimentBudget
    ) -> tuple[ExperimentRow, frozenset[int]]:
        given.append((finding.kind, budget.left_s))
        return ExperimentRow(kind=finding.kind), frozenset()

    monkeypatch.setattr(laboratory, "_run_one", note)
    record = stepping_record(
        sample_finding(kind="python-input-pipeline", lost_s=2.0),
        sample_finding(kind="eager-train-step", lost_s=1.0),
    )
    laboratory.run_experiments(record, [RecordedStep(None)], laboratory.ExperimentTerms(1000.0))
    assert [kind for kind, _ in given] == ["eager-train-step", "python-input-pipeline"]
    assert min(seconds for _, seconds in given) > 900


def test_collections_leave_out_what_the_program_holds_and_its_state_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    during: list[int] = []

    def count_frozen(*_: object) -> tuple[ExperimentRow, frozenset[int]]:
        during.append(gc.get_freeze_count())
        return ExperimentRow(kind="any"), frozenset()

    monkeypatch.setattr(laboratory, "_run_one", count_frozen)
    record = stepping_record(sample_finding(kind="eager-train-step", lost_s=1.0))
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    try:
        laboratory.run_experiments(record, [RecordedStep(None)], laboratory.ExperimentTerms())
        assert during[0] > 10_000
        assert gc.get_freeze_count() == 0

        gc.freeze()
        of_the_program = gc.get_freeze_count()
        laboratory.run_experiments(record, [RecordedStep(None)], laboratory.ExperimentTerms())
        assert gc.get_freeze_count() == pytest.approx(of_the_program, rel=0.01)
    finally:
        if not frozen:
            gc.unfreeze()
