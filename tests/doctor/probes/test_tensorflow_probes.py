"""Transfers, traces, calls, input, eager ops and Keras loops, seen on the real thing."""

from __future__ import annotations

import inspect
import json
import threading
from pathlib import Path
from typing import Any

import pytest

import stoker
from stoker.doctor.diagnosis.findings import findings
from stoker.doctor.probes import eager_ops
from stoker.doctor.probes.measurements import Books
from stoker.doctor.probes.parts.functions import CallsPart
from stoker.doctor.probes.parts.input import InputPart
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.probes.parts.steps import StepsPart, gradient_bytes
from stoker.doctor.probes.pipelines import does_make_ahead
from stoker.doctor.probes.recorder import CHECKPOINT, EAGER, GRAPH, INPUT, TEARDOWN, TRACE, TRANSFER
from stoker.doctor.probes.retrace import collectives
from stoker.doctor.probes.session import Session
from stoker.tf_internals import distribution
from tests.doctor.probes.conftest import in_a_window
from tests.support import HANGS_S

tf: Any = pytest.importorskip("tensorflow")
keras: Any = pytest.importorskip("keras")
np = pytest.importorskip("numpy")


def tallied(session: Session, probe: str) -> dict[str, Any]:
    """Tallies of this file by the function they are in."""
    return {key[2]: t for key, t in session.recorder.tallies.get(probe, {}).items() if key[0] == __file__}


def constant_in_loop(data: Any) -> None:
    for _ in range(4):
        tf.constant(data)


def convert_in_loop(data: Any) -> None:
    for _ in range(4):
        tf.convert_to_tensor(data)


def implicit_in_op(data: Any) -> None:
    for _ in range(4):
        tf.reduce_sum(data)


def implicit_in_function(data: Any) -> None:
    double = tf.function(lambda x: x * 2)
    for _ in range(4):
        double(data)


@pytest.mark.parametrize("feed", [constant_in_loop, convert_in_loop, implicit_in_op, implicit_in_function])
def test_host_data_is_counted_with_its_bytes(session: Session, feed: Any) -> None:
    feed(np.ones((100, 10), np.float32))
    tally = tallied(session, "transfer")[feed.__name__]
    assert (tally.count, tally.bytes) == (4, 4 * 4000)
    assert tally.detail["shape"] == [100, 10]
    assert session.recorder.read_balances()[0][TRANSFER] > 0


def list_of_arrays(session: Session) -> None:
    for step in range(4):
        tf.convert_to_tensor([np.full([8], step, np.float32), np.ones([8], np.float32)])


def test_a_list_of_arrays_is_data(session: Session) -> None:
    list_of_arrays(session)
    tally = tallied(session, "transfer")["list_of_arrays"]
    assert (tally.count, tally.bytes) == (4, 4 * 2 * 8 * 4)


def test_an_array_that_never_changes_is_told_from_one_that_does(session: Session) -> None:
    double, array = tf.function(lambda x: x * 2), np.ones([100], np.float32)
    kept = [np.full([100], n, np.float32) for n in range(12)]
    for number in range(12):
        double(array)
        tf.reduce_sum(kept[number])
    same = {f.detail.get("same_array"): f.source for f in findings(session.measurements())}
    assert same == {True: "double(array)", None: "tf.reduce_sum(kept[number])"}


def condition_of_a_loop() -> None:
    x = tf.constant(0.0)
    while x < 20.0:
        x = x + 1.0


def through_a_library() -> None:
    for number in range(12):
        json.dumps(tf.constant(number), default=float)


def test_reads_are_named_by_how_they_come_about(session: Session) -> None:
    condition_of_a_loop()
    through_a_library()
    found = {f.function: f for f in findings(session.measurements()) if f.kind == "sync-in-loop"}
    condition = found["condition_of_a_loop"]
    assert (condition.source, condition.count) == ("while x < 20.0:", 21)
    library = found["through_a_library"]
    assert (library.count, library.detail["through"]) == (12, "json.dumps")
    assert library.remedy.startswith("json.dumps(tf.constant(number), default=float) reads the tensor")
    assert "through" not in condition.detail


def test_a_pipeline_is_known_as_it_ran(session: Session) -> None:
    rows = tf.data.Dataset.from_tensor_slices(tf.ones([64, 4]))
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    for dataset in (rows.batch(4).shuffle(8).with_options(options), rows.batch(4).prefetch(2)):
        for _ in dataset:
            pass
    plain, prefetched = session.input.pipelines.values()
    assert [name for name, _, _ in plain.ran] == ["Root", "Shuffle", "BatchV2", "TensorSlice"]
    assert [name for name, _, _ in prefetched.ran] == ["Root", "Prefetch", "BatchV2", "TensorSlice"]
    assert (does_make_ahead(plain), does_make_ahead(prefetched)) == (False, True)
    found = [(f.kind, f.detail["pipeline"]) for f in findings(session.measurements())]
    assert ("shuffle-after-batch", ["TensorSlice", "Batch", "Shuffle"]) in found
    assert tallied(session, "sync") == {}


@pytest.mark.slow
def test_what_the_tuner_runs_is_not_the_programs_input(session: Session) -> None:
    tuned = stoker.tune(tf.data.Dataset.range(200).map(lambda n: n * 2).batch(4))
    ((site, report),) = session.measurements()[InputPart].tunings
    assert site is not None
    assert site[2] == "test_what_the_tuner_runs_is_not_the_programs_input"
    assert report == tuned.tuning.row()
    assert session.input.pipelines == {}
    assert session.measurements()[Books].totals["input"] == 0
    for _ in tuned:
        pass
    (pipeline,) = session.input.pipelines.values()
    assert pipeline.elements == 50


def test_scalars_and_shapes_are_not_data(session: Session) -> None:
    tf.constant(3.0) + tf.reshape(tf.zeros([4]), [2, 2])
    tf.pad(tf.ones([2, 2]), [[0, 0], [1, 1]])
    assert tallied(session, "transfer") == {}


def test_a_python_argument_that_changes_is_named(session: Session) -> None:
    @tf.function
    def scale(x: Any, factor: int) -> Any:
        return x * factor

    for factor in range(4):
        scale(tf.ones(3), factor)
    (traced,) = [f for f in session.retrace.functions.values() if f.name == "scale"]
    assert (traced.traces, traced.retraces, traced.objects) == (4, 3, 1)
    assert [(c.argument, c.old, c.new, c.python) for c in traced.changes[:1]] == [("factor", "0", "1", True)]
    assert session.recorder.read_balances()[0][TRACE] > 0


def test_a_shape_that_changes_is_named(session: Session) -> None:
    @tf.function
    def total(batch: Any) -> Any:
        return tf.reduce_sum(batch)

    for size in (1, 2, 3):
        total(tf.ones(size))
    (traced,) = [f for f in session.retrace.functions.values() if f.name == "total"]
    first = traced.changes[0]
    assert (first.argument, first.old, first.new, first.python) == (
        "batch",
        "float32[1]",
        "float32[2]",
        False,
    )


def test_a_function_made_again_and_again_is_several_objects(session: Session) -> None:
    for _ in range(5):

        @tf.function
        def step(x: Any) -> Any:
            return x + 1

        step(tf.ones(2))
    (traced,) = [f for f in session.retrace.functions.values() if f.name == "step"]
    assert (traced.objects, traced.traces, traced.retraces) == (5, 5, 0)


def test_a_function_that_makes_its_variables_is_one_object(session: Session) -> None:
    holder: list[Any] = []

    @tf.function
    def step(x: Any) -> Any:
        if not holder:
            holder.append(tf.Variable(1.0))
        return holder[0].assign_add(x)

    for _ in range(3):
        step(tf.constant(1.0))
    (traced,) = [f for f in session.retrace.functions.values() if f.name == "step"]
    assert (traced.objects, traced.retraces) == (1, 0)


def test_a_call_that_updates_variables_is_a_step(session: Session) -> None:
    weight = tf.Variable(0.0)

    @tf.function
    def helper(x: Any) -> Any:
        return x * 2

    @tf.function
    def train(x: Any) -> None:
        weight.assign_add(tf.reduce_mean(x))

    for _ in range(6):
        train(helper(tf.ones([8, 2])))
    measured = session.measurements()
    assert measured[StepsPart].count == 6
    (called,) = [f for f in measured[CallsPart].functions if f.name == "train"]
    assert (called.calls, called.batch) == (6, 8)
    assert measured[Books].totals["graph"] > 0


def test_eager_ops_are_counted_and_their_tape_found(session: Session) -> None:
    weight = tf.Variable(1.0)
    before = session.eager.count
    for _ in range(20):
        with tf.GradientTape() as tape:
            loss = tf.square(weight * 3.0)
        weight.assign_sub(0.1 * tape.gradient(loss, weight))
    assert session.eager.count - before >= 20 * 4
    tape_tally = tallied(session, "tape")["test_eager_ops_are_counted_and_their_tape_found"]
    assert tape_tally.count == 20
    assert session.measurements()[StepsPart].count == 20
    assert session.recorder.read_balances()[0][EAGER] > 0


def test_a_tape_under_another_is_of_the_same_step(session: Session) -> None:
    weight = tf.Variable(1.0)

    def slope(x: Any) -> Any:
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.square(x) * weight
        return inner.gradient(y, x)

    for _ in range(60):
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        with tf.GradientTape() as outer:
            loss = tf.square(slope(tf.constant(2.0)) - 1.0)
        weight.assign_sub(0.1 * outer.gradient(loss, weight))
    found = [f for f in findings(session.measurements()) if f.kind == "eager-train-step"]
    assert [f.line for f in found] == [line]
    assert {span.site[1] for span in spans_named(session, "tape")} == {line}


def test_an_optimizer_of_raw_variables_steps_like_any_other(session: Session) -> None:
    weight, optimizer = tf.Variable(tf.ones([3, 4])), keras.optimizers.SGD(0.1)
    for _ in range(12):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(weight))
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
    measured = session.measurements()
    assert (measured[StepsPart].count, measured[Books].notes) == (12, [])
    assert gradient_bytes(measured) == 3 * 4 * 4


def forward(weight: Any) -> Any:
    """A model as a helper module has it: several lines of ops."""
    x = weight * 3.0
    x = tf.tanh(x)
    return tf.square(x)


def learn_actor(weight: Any) -> None:
    with tf.GradientTape() as tape:
        loss = forward(weight)
    weight.assign_sub(0.1 * tape.gradient(loss, weight))


def learn_critic(weight: Any) -> None:
    with tf.GradientTape() as tape:
        loss = forward(weight)
    weight.assign_sub(0.1 * tape.gradient(loss, weight))


def learn_value(weight: Any) -> None:
    with tf.GradientTape() as tape:
        loss = forward(weight)
    weight.assign_sub(0.1 * tape.gradient(loss, weight))


def test_every_function_with_a_tape_is_one_finding_with_its_lines_as_parts(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Samples are taken by the clock: of so short a run, one at every op.
    monkeypatch.setattr(eager_ops, "_SAMPLE_NS", 0)
    actor, critic, value = (tf.Variable(1.0) for _ in range(3))
    for _ in range(60):
        learn_actor(actor)
        learn_critic(critic)
        learn_value(value)
    found = {f.function: f for f in findings(session.measurements()) if f.detail.get("ops")}
    assert sorted(found) == ["learn_actor", "learn_critic", "learn_value"]
    for name, finding in found.items():
        assert (finding.kind, finding.source) == ("eager-train-step", "with tf.GradientTape() as tape:")
        assert {part["function"] for part in finding.detail["parts"]} == {name, "forward"}


def spans_named(session: Session, name: str) -> list[Any]:
    windows = session.steps.windows.all()
    return [span for window in windows for span in window.spans if span.name == name]


def test_a_read_before_the_first_call_leaves_its_trace_out_of_the_steps(session: Session) -> None:
    weight = tf.Variable(1.0)
    rows = np.ones([1 << 16], np.float32)

    @tf.function
    def step(x: Any) -> Any:
        return weight.assign_sub(0.001 * tf.reduce_mean(x))

    for _ in range(10):
        x = tf.convert_to_tensor(rows)
        step(x)
    phase = session.steps.phase()
    assert phase.steps == 9
    assert session.recorder.read_balances()[0][TRACE] > 0
    assert phase.totals["trace"] == 0


def test_an_op_inside_a_function_is_not_an_eager_op(session: Session) -> None:
    step = tf.function(lambda x: tf.square(x) + x * 2)
    x = tf.constant(1.0)
    step(x)
    before, graph = session.eager.count, session.recorder.read_balances()[0][GRAPH]
    for _ in range(10):
        step(x)
    assert session.eager.count == before
    assert session.recorder.read_balances()[0][GRAPH] > graph


def test_python_iteration_waits_on_the_input_account(session: Session) -> None:
    dataset = tf.data.Dataset.range(20).map(lambda x: x + 1).batch(4)
    for _ in dataset:
        pass
    pipeline = list(session.input.pipelines.values())[-1]
    assert [stage.name for stage in pipeline.stages] == ["Batch", "Map", "Range"]
    assert pipeline.elements == 5
    assert all(stage.site is not None and stage.site[0] == __file__ for stage in pipeline.stages)
    assert session.recorder.read_balances()[0][INPUT] >= pipeline.wait_ns > 0


def test_taking_an_iterator_down_is_no_wait_for_an_element(session: Session) -> None:
    dataset = tf.data.Dataset.range(8).batch(4)
    for _ in range(3):
        iterator = iter(dataset)
        list(iterator)
        waited = session.recorder.read_balances()[0]
        del iterator
        gone = session.recorder.read_balances()[0]
        assert gone[INPUT] == waited[INPUT]
        assert gone[TEARDOWN] > waited[TEARDOWN]
    (pipeline,) = session.input.pipelines.values()
    assert (pipeline.iterators, pipeline.teardowns) == (3, 3)
    assert pipeline.teardown_ns == session.recorder.read_balances()[0][TEARDOWN]


def test_iterators_of_a_loop_of_keras_are_not_the_programs_to_keep(session: Session) -> None:
    model = keras.Sequential([keras.Input([4]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    rows = tf.data.Dataset.from_tensor_slices((np.ones([8, 4]), np.ones([8, 1]))).batch(4)
    model.fit(rows, epochs=3, verbose=0)
    model.predict(rows, verbose=0)
    assert sum(pipeline.iterators for pipeline in session.input.pipelines.values()) >= 2
    assert [pipeline.teardowns for pipeline in session.input.pipelines.values() if pipeline.teardowns] == []


def test_an_optimizer_of_plain_variables(session: Session) -> None:
    weights = [tf.Variable(tf.zeros([64, 10])), tf.Variable(tf.zeros([10]))]
    optimizer = keras.optimizers.SGD(0.1)
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.matmul(tf.ones([4, 64]), weights[0]) + weights[1])
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    measured = session.measurements()
    assert measured[StepsPart].count == 5
    assert gradient_bytes(measured) == (64 * 10 + 10) * 4


def test_python_in_a_pipeline_is_seen(session: Session) -> None:
    def numbers() -> Any:
        yield from range(3)

    source = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64))
    mapped = source.map(lambda x: tf.py_function(lambda y: y, [x], tf.int64))
    list(mapped)
    pipeline = list(session.input.pipelines.values())[-1]
    assert [(stage.name, stage.python) for stage in pipeline.stages] == [
        ("Map", True),
        ("from_generator", True),
    ]


class Slow(keras.callbacks.Callback):
    """A callback with a batch hook."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        sum(range(1000))


def small_model() -> Any:
    model = keras.Sequential([keras.Input([3]), keras.layers.Dense(2)])
    model.compile("sgd", "mse")
    return model


def test_fit_is_understood(session: Session) -> None:
    small_model().fit(
        np.ones((40, 3)), np.ones((40, 2)), batch_size=8, epochs=2, verbose=0, callbacks=[Slow()]
    )
    measured = session.measurements()
    assert measured[StepsPart].count == 10
    assert measured[StepsPart].examples_per_s
    (hook,) = [c for c in measured[KerasPart].callbacks if c.class_name == "Slow"]
    assert (hook.hook, hook.calls, hook.own) == ("on_train_batch_end", 10, True)
    assert hook.site is not None
    assert hook.site[2] == "on_train_batch_end"
    assert hook.site[0] == __file__
    (fit,) = measured[KerasPart].fits.values()
    assert fit.calls == 1
    # Keras reads its own logs: not the user's doing.
    assert tallied(session, "sync") == {}


class Monitor(keras.callbacks.Callback):
    """A callback that predicts several batches, also at the end of a step."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.model.predict(np.ones((40, 3)), batch_size=8, verbose=0)


def test_predict_in_a_callback_leaves_the_steps_of_fit_alone(session: Session) -> None:
    model = small_model()
    x, y = np.ones((56, 3)), np.ones((56, 2))
    model.fit(x, y, batch_size=8, epochs=2, verbose=0, callbacks=[Monitor()])
    measured = session.measurements()
    assert measured[StepsPart].count == int(model.optimizer.iterations) == 14
    assert [epoch.step for epoch in measured[KerasPart].epochs] == [7, 14]
    (hook,) = measured[KerasPart].callbacks
    assert (hook.calls, hook.runs_loops) == (14, True)


def test_steps_per_execution_counts_steps_not_calls(session: Session) -> None:
    model = small_model()
    model.compile("sgd", "mse", steps_per_execution=5)
    model.fit(np.ones((80, 3)), np.ones((80, 2)), batch_size=8, verbose=0)
    assert session.measurements()[StepsPart].count == 10


def test_an_execution_at_the_end_of_an_epoch_counts_the_batches_it_has(session: Session) -> None:
    model = small_model()
    model.compile("sgd", "mse", steps_per_execution=5)
    x, y = np.ones((56, 3)), np.ones((56, 2))
    model.fit(x, y, batch_size=8, epochs=3, verbose=0, validation_data=(x[:8], y[:8]))
    # Every optimizer counts its updates itself.
    assert int(model.optimizer.iterations) == 21
    assert session.measurements()[StepsPart].count == 21


def test_predict_by_rows_is_counted(session: Session) -> None:
    model = small_model()
    for row in np.ones((3, 1, 3), np.float32):
        model.predict(row, verbose=0)
    ((site, calls),) = session.measurements()[KerasPart].predicts.items()
    assert (calls.calls, calls.rows, calls.from_arrays) == (3, 3, 3)
    assert site[2] == "test_predict_by_rows_is_counted"


def test_rows_that_are_made_one_by_one_are_no_part_of_an_array(session: Session) -> None:
    model = small_model()
    for number in range(2):
        model.predict(np.full((1, 3), float(number)), verbose=0)
    (calls,) = session.measurements()[KerasPart].predicts.values()
    assert (calls.calls, calls.from_arrays) == (2, 0)


def test_saving_and_loading_are_on_the_checkpoint_account(session: Session, tmp_path: Path) -> None:
    model = small_model()
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    keras.saving.load_model(tmp_path / "model.keras")
    tf.train.Checkpoint(v=tf.Variable(1.0)).save(str(tmp_path / "ckpt"))
    assert (
        sum(t.count for key, t in session.recorder.tallies["checkpoint"].items() if key[0] == __file__) == 4
    )
    assert session.recorder.read_balances()[0][CHECKPOINT] > 0


def test_the_programs_own_profiler_comes_first(session: Session, tmp_path: Path) -> None:
    tf.profiler.experimental.start(str(tmp_path))
    session.windows._take(0.01)
    assert session.windows.summary.windows == 0
    tf.profiler.experimental.stop()
    assert list(tmp_path.rglob("*.xplane.pb"))
    assert session.recorder.notes == [
        "the program uses TensorFlow's profiler, so Stoker's profiler windows are off"
    ]
    session.recorder.notes.clear()


def test_a_window_yields_to_a_profiler_started_meanwhile(session: Session, tmp_path: Path) -> None:
    thread = threading.Thread(target=session.windows._take, args=(HANGS_S,))
    thread.start()
    while session.windows._session is None:
        pass
    tf.profiler.experimental.start(str(tmp_path))
    tf.profiler.experimental.stop()
    thread.join(timeout=HANGS_S / 2)
    assert not thread.is_alive()
    session.recorder.notes.clear()


def test_a_window_ends_before_the_process_becomes_a_worker(session: Session) -> None:
    thread = threading.Thread(target=session.windows._take, args=(HANGS_S,))
    thread.start()
    while session.windows._session is None:
        pass
    place, name = distribution.joining()
    with pytest.raises(ValueError, match="server_def is None"):
        getattr(place, name)(None, None)
    assert session.windows._session is None
    thread.join(timeout=HANGS_S / 2)
    assert not thread.is_alive()


def test_a_window_sees_the_graph_and_writes_nothing_to_stderr(
    session: Session, capfd: pytest.CaptureFixture[str]
) -> None:
    step = tf.function(lambda x: tf.linalg.matmul(x, x))
    x = tf.random.normal([300, 300])
    step(x)
    capfd.readouterr()
    in_a_window(session, lambda: step(x), calls=10)
    summary = session.windows.summary
    assert summary.windows == 1
    assert 0 < summary.graph_busy_ns <= summary.graph_ns <= summary.window_ns * 1.5
    assert capfd.readouterr().err == ""


def test_a_window_that_may_have_too_many_events_ends_with_a_whole_step(session: Session) -> None:
    step, x = tf.function(lambda x: tf.linalg.matmul(x, x)), tf.random.normal([300, 300])
    thread = threading.Thread(target=session.windows._take, args=(HANGS_S,))
    thread.start()
    while thread.is_alive():
        step(x)
    assert 0 < session.windows.summary.window_ns < HANGS_S / 2 * 1e9
    assert session.windows.summary.graph_calls >= 1


@pytest.mark.slow
def test_what_predict_does_is_its_own_not_the_tapes(session: Session) -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    x = np.ones((1, 2), np.float32)
    for _ in range(30):
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        model.predict(x, verbose=0)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x))
        tape.gradient(loss, model.trainable_variables)
    lines = {stack[0].site[1] for stack in session.eager.stacks if stack[0].site[0] == __file__}
    assert lines
    assert line not in lines
    spans = [span for window in session.steps.windows.all() for span in window.spans]
    mine = [span for span in spans if isinstance(span.site, tuple) and span.site[:2] == (__file__, line)]
    assert {"predict"} <= {span.name for span in mine}


def test_weights_that_are_drawn_are_no_part_of_a_loop(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(eager_ops, "_SAMPLE_NS", 0)
    for width in range(1, 5):
        built = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        model = keras.Sequential([keras.Input((width,)), keras.layers.Dense(8), keras.layers.Dense(1)])
        for _ in range(4):
            asked = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
            model(np.ones((1, width), np.float32))
    lines = {stack[0].site[1] for stack in session.eager.stacks if stack[0].site[0] == __file__}
    assert asked in lines
    assert built not in lines


def test_a_model_for_each_fold_is_found_at_the_line_that_fits_it(session: Session) -> None:
    x, y = np.ones((8, 3), np.float32), np.ones((8, 2), np.float32)
    for _ in range(3):
        model = small_model()
        fitted = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        model.fit(x, y, epochs=2, verbose=0)
        model.evaluate(x, y, verbose=0)
    (found,) = [f for f in findings(session.measurements()) if f.kind == "new-model-in-loop"]
    assert (found.line, found.count, found.detail["models"], found.detail["traces"]) == (fitted, 3, 3, 6)


def exchanged(tensor: Any) -> Any:
    """As a collective strategy writes it into the graph; it is traced here and never run."""
    return tf.raw_ops.CollectiveReduceV2(
        input=tensor,
        group_size=2,
        group_key=1,
        instance_key=1,
        ordering_token=[],
        merge_op="Add",
        final_op="Id",
    )


def test_exchanges_are_those_of_a_step() -> None:
    def plainly(x: Any) -> Any:
        return exchanged(x) + exchanged(2 * x)

    def in_a_loop(x: Any) -> Any:
        first = exchanged(x[:1])
        looped = tf.while_loop(lambda i, _: i < 9, lambda i, y: (i + 1, exchanged(y)), (0, x))[1]
        return exchanged(looped[:1]) + first

    spec = tf.TensorSpec([8], tf.float32)
    assert collectives(tf.function(plainly).get_concrete_function(spec).graph) == (2, 64)
    assert collectives(tf.function(in_a_loop).get_concrete_function(spec).graph) == (1, 32)


def test_putting_models_together_and_setting_their_weights_is_no_step(session: Session) -> None:
    """A search trains a new model in each turn of its loop: building that one is not part of its steps."""
    learned: Any = None
    for _ in range(4):
        model = keras.Sequential([keras.Input((3,)), *(keras.layers.Dense(4) for _ in range(12))])
        if learned is not None:
            model.set_weights(learned)
        learned = model.get_weights()
    assert session.recorder.steps == 0
    (read,) = session.recorder.tallies["sync"].values()
    assert (read.count, read.between) == (4 * 24, 1)
    for _ in range(3):
        model(np.ones((2, 3), np.float32))
    assert session.recorder.steps == 3
