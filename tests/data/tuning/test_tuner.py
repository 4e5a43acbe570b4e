"""`stoker.tune`: its arguments, what it leaves untouched, and its report."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.data.tuning import comparing, rates, stage_costs
from stoker.data.tuning.rebuilding import renew, replace_stage
from stoker.doctor.report import tuning as shown
from stoker.errors import ArgumentError
from tests.data.tuning.judging import CACHE, MAP, changed, made

pytestmark = pytest.mark.filterwarnings("ignore")


def mapped(count: int = 300) -> Any:
    values: Any = np.arange(count * 4, dtype=np.float32).reshape(count, 4)
    return tf.data.Dataset.from_tensor_slices(values).map(lambda x: x / 3).batch(8)


@pytest.fixture(scope="module")
def tuned() -> Any:
    slow = tf.data.Dataset.range(400).map(lambda n: tf.cast(n, tf.float32) * 2).shuffle(20, seed=1).batch(16)
    slow.class_names = ["a", "b"]
    return stoker.tune(slow)


@pytest.mark.slow
def test_it_gives_the_same_elements_with_a_report(tuned: Any) -> None:
    again = tf.data.Dataset.range(400).map(lambda n: tf.cast(n, tf.float32) * 2).shuffle(20, seed=1).batch(16)
    assert comparing.difference(again, renew(tuned), 100) is None
    assert tuned.tuning.before > 0
    assert tuned.tuning.after >= tuned.tuning.before
    assert tuned.tuning.rows_per_element == 16
    assert tuned.class_names == ["a", "b"]


def test_the_report_is_json(tuned: Any) -> None:
    found = json.loads(json.dumps(tuned.tuning.as_json()))
    assert found["schema"] == 1
    assert found["stages"]["stage"] == "batch(16)"
    assert found["stages"]["inputs"][0]["stage"] == "shuffle(20)"
    assert {"name", "stage", "before", "after"} == set(found["changes"][0]) if found["changes"] else True


def test_the_report_for_people(tuned: Any) -> None:
    text = shown.text(tuned.tuning.row())
    assert text.startswith("The pipeline gives ")
    assert "batches/s" in text
    assert "shuffle(20)" in text
    assert "range()" in text


def test_what_it_returns_has_not_been_iterated() -> None:
    ds = mapped().shuffle(9, seed=4)
    result, _ = changed(ds)
    first = [batch.numpy().tolist() for batch in result]
    assert first == [batch.numpy().tolist() for batch in renew(ds)]


def test_the_users_dataset_stays_at_its_epoch() -> None:
    ds = mapped().shuffle(9, seed=4)
    expected = renew(ds)
    changed(ds)
    assert comparing.difference(expected, ds, 100) is None


def test_variables_are_put_back() -> None:
    source = tf.random.Generator.from_seed(1)
    before = source.state.numpy()
    ds = tf.data.Dataset.range(50).map(lambda n: source.uniform([2])).batch(8)
    stoker.tune(ds)
    assert (source.state.numpy() == before).all()


def test_a_pipeline_that_leaves_something_behind_is_not_run(tmp_path: Any) -> None:
    def noted(n: Any) -> Any:
        tf.io.write_file(str(tmp_path / "seen"), tf.strings.as_string(n))
        return n

    ds = tf.data.Dataset.range(9).map(noted).batch(3)
    result = stoker.tune(ds)
    assert result is ds
    assert "WriteFile" in ds.tuning.left[0].why
    assert not (tmp_path / "seen").exists()


def test_a_pipeline_that_fails_is_left_alone() -> None:
    ds = tf.data.Dataset.from_tensor_slices(["x"]).map(tf.strings.to_number).batch(2)
    assert stoker.tune(ds) is ds
    assert "StringToNumberOp" in ds.tuning.left[-1].why
    assert shown.text(ds.tuning).startswith("The pipeline was not measured.")


def test_a_reader_of_stoker_is_left_alone() -> None:
    ds = stoker.data.arrays(np.ones((20, 2), np.float32), batch_size=4)
    assert stoker.tune(ds) is ds
    assert "stoker.data" in ds.tuning.left[0].why


def test_with_a_slow_step_there_is_nothing_to_do() -> None:
    ds = mapped()
    assert stoker.tune(ds, step=5) is ds
    assert 0 < ds.tuning.step_per_s < 5.1
    assert "it is faster than the step" in ds.tuning.left[0].why
    assert shown.headline(ds.tuning).startswith("The step takes ")


def test_floats_may_be_rounded_differently_if_that_is_allowed() -> None:
    ds = tf.data.Dataset.from_tensor_slices(np.ones((90, 5), np.float32)).map(tf.exp).batch(8)
    _, report = changed(ds)
    assert MAP not in made(report)
    assert any("last-place" in left.why for left in report.left)
    result, report = changed(ds, allow="last-place")
    assert MAP in made(report)
    assert comparing.difference(renew(ds), result, 99, allow=comparing.LAST_PLACE) is None


def test_a_conversion_by_tensorflow_where_there_is_no_rule() -> None:
    table = tf.constant(np.arange(30.0).reshape(3, 10), tf.float32)
    ds = tf.data.Dataset.range(90).map(lambda n: tf.gather(table, n % 10, axis=1)).batch(8)
    result, report = changed(ds)
    assert MAP in made(report)
    assert comparing.difference(renew(ds), result, 99) is None


def test_a_cache_that_does_not_fit_is_left_out() -> None:
    ds = tf.data.Dataset.range(1000).map(lambda n: tf.cond(n > 3, lambda: n, lambda: -n)).batch(8)
    _, report = changed(ds, memory=1000)
    assert CACHE not in made(report)
    assert any("7.8 KiB does not fit into the 1000 B" in left.why for left in report.left)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"allow": "roughly"}, "allow='roughly' must be"),
        ({"memory": "much"}, "memory='much' must be bytes"),
        ({"memory": -1}, "memory=-1 must be bytes"),
        ({"step": "fast"}, "step='fast' must be a function"),
        ({"step": 0}, "step=0 must be a function"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        stoker.tune(mapped(), **arguments)


def test_what_is_no_dataset() -> None:
    with pytest.raises(ArgumentError, match=r"must be a tf\.data\.Dataset"):
        stoker.tune([1, 2, 3])


def test_the_costs_of_stages_add_up() -> None:
    ds = mapped(3000).repeat()
    top = stage_costs.measure_stages(ds, 0.2)
    if top.core is None:
        pytest.skip("this TensorFlow does not open its books")
    names, total, stage = [], 0.0, top
    while True:
        names.append(stage.stage.split("(")[0])
        total += stage.core or 0.0
        if not stage.inputs:
            break
        (stage,) = stage.inputs
    assert names == ["repeat", "batch", "map", "from_tensor_slices"]
    # Shares of one serial pass: no more than the cores there are.
    assert 0 < total < 2.5


def test_one_stage_exchanged() -> None:
    batch = mapped()
    ds = batch.prefetch(2)
    new = replace_stage(ds, batch, batch.take(1))
    assert len(list(new)) == 1
    assert len(list(ds)) == 38


@pytest.mark.parametrize(
    ("ratios", "work", "won"),
    [
        ([9.0], 1.0, True),
        ([1.2, 1.3, 1.1, 1.2], 1.0, True),
        ([1.2, 1.3, 0.9, 1.2], 1.0, False),
        ([1.01, 1.02, 1.03, 1.04], 1.0, False),
        ([1.2, 1.2, 1.2, 1.2], 0.6, False),
        ([1.9, 1.8, 1.7, 1.9], 0.8, True),
        ([0.3], 1.0, False),
        ([], 1.0, False),
    ],
)
def test_what_counts_as_faster(ratios: list[float], work: float, won: bool) -> None:
    rounds = tuple((rates.Rate(10, 10), rates.Rate(10 * ratio, 10 * work)) for ratio in ratios)
    assert rates.Race(rounds).is_faster(1.05) is won


def test_a_rate_without_a_second_element() -> None:
    timing = rates.Timing(seconds=0.01, rounds=1)
    assert timing.rate(tf.data.Dataset.range(0)) is None
    assert timing.rate(tf.data.Dataset.range(1)) is not None
