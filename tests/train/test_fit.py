"""`stoker.fit` beyond Keras' numbers: the same bits every time, the plan and its memory, errors, what is shown."""

from __future__ import annotations

import gc
import json
import os
import weakref
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.train.execution.feeding import memory, sources
from stoker.train.execution.feeding.resident import order_of
from stoker.train.execution.hooks import list_batch_callbacks
from stoker.train.loop.progress import Bar
from stoker.train.planning import decide, trials
from stoker.train.planning.largest_batch import BatchTooLargeError
from stoker.train.planning.plan import Plan, parse
from stoker.train.planning.trials import Snapshot
from stoker.train.variables import named_variables
from tests.train import models

X, Y = models.data()
CB = keras.callbacks


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def dense(*middle: Any, **compiled: Any) -> Any:
    keras.utils.set_random_seed(5)
    return models.dense(*middle, **compiled)


def bits(model: Any) -> list[bytes]:
    return [np.asarray(variable).tobytes() for variable in [*model.variables, *model.optimizer.variables]]


def fitted(*plans: Any) -> list[tuple[list[bytes], dict[str, list[float]]]]:
    """One model, fitted from the same start with each of the plans: what can be compiled once is."""
    keras.utils.set_random_seed(5)
    model = dense(keras.layers.Dropout(0.5), optimizer="adam")
    start = Snapshot(named_variables(model).values())
    ends = []
    for plan in plans:
        start.restore()
        keras.utils.set_random_seed(5)
        history = stoker.fit(model, X, Y, 7, epochs=3, verbose=0, plan=plan)
        ends.append((bits(model), history.history))
    return ends


class Rows(keras.Model):
    """Writes down the rows it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = tf.Variable(-tf.ones([400]), trainable=False)
        self.count = tf.Variable(0, trainable=False)
        self.traced = 0

    def call(self, x: Any) -> Any:
        return x

    def train_step(self, batch: Any) -> dict[str, Any]:
        self.traced += 1
        rows = tf.reshape(batch, [-1])
        places = self.count + tf.range(tf.size(rows))
        self.seen.scatter_nd_update(places[:, None], rows)
        self.count.assign_add(tf.size(rows))
        return {"last": rows[-1]}


def test_the_same_call_gives_the_same_bits_and_cuts_do_not_change_them() -> None:
    for jit in ("none", "loop"):
        few, many = fitted({"jit": jit, "steps_per_call": 1}, {"jit": jit, "steps_per_call": 100})
        [some] = fitted({"jit": jit, "steps_per_call": 3})
        assert few == many == some, jit
    one, resident = fitted("streamed", "resident, none")
    assert [one] == fitted("streamed")
    assert one == resident, "the order of the rows does not depend on the feed"


def test_every_epoch_is_a_full_shuffle_and_no_two_are_the_same() -> None:
    model = Rows()
    model.compile("sgd")
    rows: Any = np.arange(50.0, dtype="float32")[:, None]
    for feed in ("resident", "streamed"):
        stoker.fit(model, rows, batch_size=8, epochs=4, verbose=0, plan=feed)
    seen = np.asarray(model.seen).reshape(8, 50)
    assert all(sorted(epoch) == sorted(rows[:, 0]) for epoch in seen)
    assert len({tuple(epoch) for epoch in seen[:4]}) == 4
    # The optimizer made no updates: both calls are the same one, fed in two ways.
    np.testing.assert_array_equal(seen[:4], seen[4:])


def test_the_order_is_uniform() -> None:
    counts = np.zeros((6, 6))
    for epoch in range(3000):
        counts[np.arange(6), order_of(6, 2, True, 1, epoch)] += 1
    assert np.abs(counts - 500).max() < 5 * 500**0.5
    within = order_of(50, 8, "batch", 1, 0)
    assert sorted(within) == list(range(50))
    assert all(
        set(within[start : start + 8]) == set(range(50)[start : start + 8]) for start in range(0, 50, 8)
    )
    assert list(within) != list(range(50))


def test_a_second_fit_traces_nothing_and_the_model_can_go() -> None:
    model = Rows()
    model.compile("sgd")
    rows: Any = np.arange(40.0, dtype="float32")[:, None]
    stoker.fit(model, rows, batch_size=8, verbose=0)
    traced = model.traced
    stoker.fit(model, rows + 1, batch_size=8, epochs=3, verbose=0)
    assert model.traced == traced == 1
    gone = weakref.ref(model)
    del model
    keras.backend.clear_session()
    gc.collect()
    assert gone() is None


# The plan.


@pytest.fixture
def eager_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every job is long enough for a trial."""
    monkeypatch.setattr(decide, "FEWEST_STEPS_FOR_XLA", 1)
    monkeypatch.setattr(trials, "SHORTEST_JOB_S", 0.0)


def choices() -> list[Path]:
    return sorted(Path(".stoker/plans").glob("*.json"))


def test_a_small_job_tries_nothing_and_leaves_nothing() -> None:
    history = stoker.fit(dense(), X, Y, epochs=2, verbose=0)
    assert history.plan.jit == "none"
    assert history.plan.reasons == ("4 steps would not repay compiling with XLA",)
    assert not Path(".stoker").exists()


def test_from_a_thousand_steps_on_the_length_of_the_job_decides() -> None:
    def why(rows: int, epochs: int) -> str:
        reasons = stoker.fit(dense(), *models.data(rows), 1, epochs=epochs, verbose=0).plan.reasons
        return str(reasons[0])

    assert why(27, 37) == "999 steps would not repay compiling with XLA"
    assert "steps would not repay" not in why(50, 20)


@pytest.mark.parametrize(
    ("kept", "job_s", "tried"),
    [(False, 7.9, False), (False, 8.1, True), (True, 3.9, False), (True, 4.1, True)],
)
def test_xla_is_tried_for_jobs_that_would_repay_compiling(
    kept: bool, job_s: float, tried: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half as long a job will do if the next one finds what this one compiles."""
    monkeypatch.setattr(decide, "FEWEST_STEPS_FOR_XLA", 1)
    monkeypatch.setattr(trials, "are_kept", lambda: kept)
    monkeypatch.setattr(trials, "_time", lambda loop, steps: job_s / 8)
    monkeypatch.setattr(trials, "measure_share_that_ran", lambda before: 1.0)
    reason = stoker.fit(dense(), X, Y, 12, epochs=2, verbose=0).plan.reasons[0]
    untried = f"XLA not tried: {job_s} s of training would not repay compiling"
    assert reason.partition(";")[0] == ("XLA is only 1.00x as fast here" if tried else untried)


@pytest.mark.usefixtures("eager_to_try")
def test_a_trial_leaves_no_trace_in_the_numbers_and_its_choice_holds() -> None:
    model = dense(optimizer="adam")
    model.optimizer.build(model.trainable_variables)
    variables = [*model.variables, *model.optimizer.variables]
    beginning = [variable.numpy().copy() for variable in variables]

    def run(plan: Any = None) -> tuple[Any, Any]:
        for variable, value in zip(variables, beginning, strict=True):
            variable.assign(value)
        history = stoker.fit(model, X, Y, 12, epochs=2, verbose=0, plan=plan)
        return (bits(model), history.history), history.plan

    first, plan = run()
    (path,) = choices()
    assert {"none_us", "loop_us", "compile_s", "apart", "deciding_s"} <= set(plan.figures)
    assert plan.figures["apart"] < 0.01
    assert first == run(plan.jit)[0], "as if nothing had been tried"
    again, remembered = run()
    assert again == first
    assert "as remembered" in remembered.reasons[-1]
    # The clock has no say any more: whatever is written there is done.
    choice = json.loads(path.read_text())
    for jit in ("loop", "none"):
        path.write_text(json.dumps({**choice, "jit": jit}))
        numbers, obeyed = run()
        assert obeyed.jit == jit
        assert numbers == run(jit)[0]
    path.write_text("{half a fi")
    assert "deciding took" in run()[1].reasons[-1]
    assert json.loads(path.read_text())["jit"] in ("loop", "none")


@pytest.mark.usefixtures("eager_to_try")
def test_candidates_that_cannot_be_or_differ_are_dropped() -> None:
    class ThroughText(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return x + 0.0 * tf.strings.to_number(tf.strings.as_string(tf.stop_gradient(x)))

    history = stoker.fit(dense(ThroughText()), X, Y, 12, verbose=0)
    assert history.plan.jit == "none"
    assert "XLA cannot compile it" in history.plan.reasons[0]

    class HiddenNoise(keras.layers.Layer):
        def call(self, x: Any) -> Any:
            return x + tf.random.normal(tf.shape(x))

    history = stoker.fit(dense(HiddenNoise()), X, Y, 12, verbose=0)
    assert "RandomStandardNormal keeps its random state" in history.plan.reasons[0]

    history = stoker.fit(dense(keras.layers.Dropout(0.5)), X, Y, 12, verbose=0)
    assert history.plan.jit == "none"
    assert history.plan.reasons[0].startswith("XLA's results differ"), "XLA draws other masks"


@pytest.mark.usefixtures("eager_to_try")
def test_where_nothing_can_be_remembered_the_clock_decides_nothing() -> None:
    Path(".stoker").write_text("in the way")
    history = stoker.fit(dense(), X, Y, 12, verbose=0)
    assert history.plan.jit == "none"
    assert "cannot be written" in history.plan.reasons[0]


def test_data_that_does_not_fit_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "room_for_data", lambda: 1000)
    history = stoker.fit(dense(), X, Y, 12, verbose=0)
    assert history.plan.feed == "streamed"
    assert history.plan.reasons[0] == "1.1 KiB of data, room for 1000 B"


@pytest.mark.parametrize(("free", "feed"), [(2880, "resident"), (2877, "streamed")])
def test_data_may_take_two_fifths_of_the_free_memory(
    free: int, feed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "free", lambda: free)
    source = sources.source(X, Y, batch_size=12)
    assert source.bytes == X.nbytes + Y.nbytes == 1152
    assert decide.choose_feed(source, Plan()).feed == feed


def test_free_memory_is_less_than_there_is() -> None:
    assert 0 < memory.room_for_data() < os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.slow
def test_a_batch_that_does_not_fit_names_one_that_does() -> None:
    allowed = Path("/proc/sys/vm/overcommit_memory")
    if not allowed.exists() or allowed.read_text().strip() == "1":
        pytest.skip("the system promises any amount of memory")
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    row = total * 52 // 100 // 4 // 1024

    class Hungry(keras.Model):
        def train_step(self, batch: Any) -> Any:
            x, y = batch
            # Never touched, so never really there; the system refuses more than it has all the same.
            much = tf.raw_ops.Empty(shape=[tf.shape(x)[0], 1024, row], dtype=tf.float32, init=False)
            return super().train_step((x + 0.0 * much[0, 0, 0], y))

    inputs = keras.Input((models.WIDTH,))
    model = Hungry(inputs, keras.layers.Dense(1)(inputs))
    model.compile("sgd", "mse")
    with pytest.raises(
        BatchTooLargeError, match=r"batch_size=2 does not fit .*: 1 does .* pass batch_size=1"
    ):
        stoker.fit(model, X, X[:, :1], 2, verbose=0)


@pytest.mark.parametrize(
    ("given", "plan"),
    [
        (None, Plan()),
        ("loop", Plan(jit="loop")),
        ("streamed, none, 64", Plan("streamed", 64, "none")),
        ({"feed": "resident"}, Plan("resident")),
        (Plan(jit="step"), Plan(jit="step")),
    ],
)
def test_a_plan_can_be_pinned(given: Any, plan: Plan) -> None:
    assert parse(given) == plan


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("residant", "'residant' is neither a feed"),
        ("loop, none", "gives jit twice"),
        ({"jit": "all"}, "jit='all' is not one of 'loop', 'step', 'update', 'none'"),
        ({"steps": 3}, "'steps' is not a field of a plan"),
        ({"steps_per_call": 0}, "steps_per_call=0 must be a whole number of at least 1"),
        (3.5, "plan must be a stoker.Plan"),
        ("streamed, loop", "jit='loop' needs resident data"),
    ],
)
def test_a_bad_plan_is_one_clear_line(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        stoker.fit(dense(), X, Y, verbose=0, plan=given)
    assert isinstance(raised.value, stoker.errors.StokerError)
    assert "\n" not in str(raised.value)


def test_a_model_that_cannot_be_trained_is_refused() -> None:
    with pytest.raises(ValueError, match="not compiled"):
        stoker.fit(keras.Sequential([keras.layers.Dense(1)]), X, Y)
    with pytest.raises(ValueError, match=r"takes a keras\.Model first, got ndarray"):
        stoker.fit(X, Y)
    with pytest.raises(ValueError, match="cannot be resident: the data is a"):
        stoker.fit(dense(), tf.data.Dataset.from_tensors((X, Y)), shuffle=False, plan="resident")


# Callbacks and the terminal.


def test_only_callbacks_that_act_on_batches_slow_the_calls(tmp_path: Path) -> None:
    quiet = [
        CB.EarlyStopping(),
        CB.ModelCheckpoint("m.keras"),
        CB.BackupAndRestore("b"),
        CB.TensorBoard("logs"),
        CB.CSVLogger("log.csv"),
        CB.LambdaCallback(on_epoch_end=print),
        CB.ProgbarLogger(),
    ]
    assert list_batch_callbacks(quiet) == []
    acting = [
        CB.ModelCheckpoint("m.keras", save_freq=10),
        CB.TensorBoard("logs", update_freq=5),
        CB.TensorBoard("logs", profile_batch=2),
        CB.TerminateOnNaN(),
        CB.LambdaCallback(on_train_batch_end=print),
    ]
    for callback in acting:
        assert list_batch_callbacks([callback]) == [type(callback).__name__]


def test_a_callback_that_says_so_is_called_once_per_call() -> None:
    class Numbers(keras.callbacks.Callback):
        every_batch = False

        def __init__(self) -> None:
            super().__init__()
            self.begun: list[int] = []
            self.ended: list[int] = []

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
            self.begun.append(batch)

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.ended.append(batch)

    told = Numbers()
    plan = Plan(jit="none", steps_per_call=3)
    stoker.fit(dense(), X, Y, 6, epochs=2, verbose=0, callbacks=[told], plan=plan)
    assert (told.begun, told.ended) == ([0, 3, 6] * 2, [2, 5, 7] * 2)


def test_the_plan_and_the_pace_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    stoker.fit(dense(), X, Y, 12, epochs=2, callbacks=[CB.TerminateOnNaN()])
    shown = capsys.readouterr().out
    assert shown.startswith(
        "stoker: data kept on the device, 1 step a call, no XLA "
        "(TerminateOnNaN acts at every batch; 8 steps would not repay compiling with XLA)\nEpoch 1/2\n"
    )
    assert "4/4" in shown
    assert "steps/s" in shown
    stoker.fit(dense(), X, Y, 12, verbose=0)
    assert capsys.readouterr().out == ""
    stoker.fit(dense(), X, Y, 12, verbose=2)
    assert capsys.readouterr().out.count("\n") == 2


def test_the_bar_shows_a_metric_as_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """It is the mean of the epoch so far: the bar does not take the mean of these."""
    bar = Bar(target=3, interval=0.0)
    bar.update(1, [("loss", 4.0)])
    bar.update(2, [("loss", 2.0)])
    assert "loss: 2.0000" in capsys.readouterr().out


def test_a_loss_scale_that_moved_is_the_one_that_is_used() -> None:
    """An overflow halves it: what was traced must read the scale, not know the first one."""
    x = X.copy()
    x[1, 0] = 1e6
    ends = []
    for fit in (stoker.fit, lambda model, *data, **options: model.fit(*data, **options)):
        keras.utils.set_random_seed(5)
        model = models.mixed("mixed_float16")
        fit(model, x, Y, batch_size=8, shuffle=False, verbose=0)
        assert float(model.optimizer.dynamic_scale) < 2.0**15
        ends.append(model.get_weights())
    for mine, theirs in zip(*ends, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-5)
