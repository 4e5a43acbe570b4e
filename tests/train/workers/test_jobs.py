"""Two workers, real processes, against one with the same global batch: all cases in one job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import ALL_CASES
from tests.train.workers.jobs import Job, alone

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    job = Job("cases.py", 2, tmp_path_factory.mktemp("job"))
    try:
        yield job.results()
    finally:
        job.kill()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return alone("cases.py", tmp_path_factory.mktemp("alone"))


def apart(left: Any, right: Any) -> float:
    pairs = zip(left["weights"], right["weights"], strict=True)
    return max(float(np.abs(np.subtract(mine, theirs)).max()) for mine, theirs in pairs)


@pytest.mark.parametrize(
    "case",
    [
        "fitted",
        "dropped",
        "called_back",
        "own_step",
        "broken",
        "overflown",
        "streamed",
        "tried",
        "served",
        "in_parts",
    ],
)
def test_all_workers_have_the_same_bits(ranks: list[Any], case: str) -> None:
    assert ranks[0][case]["bits"] == ranks[1][case]["bits"]


@pytest.mark.slow
def test_fit_gives_the_numbers_of_one_process(ranks: list[Any], one: Any) -> None:
    mine, theirs = ranks[0]["fitted"], one["fitted"]
    assert apart(mine, theirs) < 1e-5
    assert mine["updates"] == theirs["updates"]
    for rank in ranks:
        assert rank["fitted"]["history"].keys() == theirs["history"].keys()
        for name, values in theirs["history"].items():
            assert np.allclose(rank["fitted"]["history"][name], values, atol=1e-5), name


def test_parts_give_the_numbers_of_whole_batches_and_resume_bit_for_bit(ranks: list[Any], one: Any) -> None:
    for found in (*ranks, one):
        parted = found["in_parts"]
        assert parted["parts"] == 3
        assert apart(parted, one["fitted"]) < 1e-5
        for name, values in parted["history"].items():
            assert np.allclose(values, one["fitted"]["history"][name], atol=1e-5), name
        assert parted["resumed"]["bits"] == parted["bits"]
        assert parted["resumed"]["history"] == parted["history"]


def test_batchnorm_over_all_rows_is_that_of_one_process(ranks: list[Any], one: Any) -> None:
    assert apart(ranks[0]["normalized"]["together"], one["normalized"]["together"]) < 1e-4
    assert ranks[0]["normalized"]["together"]["bits"] == ranks[1]["normalized"]["together"]["bits"]


def test_batchnorm_of_each_replica_leaves_one_set_of_statistics(ranks: list[Any], one: Any) -> None:
    mine, other, theirs = (found["normalized"]["apart"] for found in (*ranks, one))
    assert mine["bits"] == other["bits"]
    # After the dense layer's two come gamma, beta, the moving mean and the moving variance.
    assert np.allclose(mine["weights"][4], theirs["weights"][4], atol=1e-6)


def test_dropout_leaves_out_other_units_on_each_replica(ranks: list[Any], one: Any) -> None:
    # With the same masks on both replicas the weights would be right only by chance; this only sees that they train.
    assert apart(ranks[0]["dropped"], one["dropped"]) > 1e-4


def test_callbacks_run_on_the_chief_and_hold_for_all(ranks: list[Any], one: Any) -> None:
    chief, other, theirs = (found["called_back"] for found in (*ranks, one))
    assert (
        (chief["epochs"], chief["rate"])
        == (other["epochs"], other["rate"])
        == (theirs["epochs"], theirs["rate"])
    )
    assert chief["ran"] == theirs["ran"] > 0
    assert other["ran"] == 0


def test_epochs_leave_no_threads_behind(ranks: list[Any]) -> None:
    # An epoch that resets metrics the usual way leaves two dozen; a timeout of TensorFlow's, two for each collective.
    assert ranks[0]["called_back"]["epochs"] == 4
    assert ranks[0]["called_back"]["threads"] < 6


def test_a_worker_that_waits_in_vain_gives_up(ranks: list[Any]) -> None:
    assert "the other workers did not arrive in time" in ranks[0]["in_vain"]["said"]


def test_clip_accumulation_averages_and_freezing(ranks: list[Any], one: Any) -> None:
    mine, theirs = ranks[0]["own_step"], one["own_step"]
    assert apart(mine, theirs) < 1e-5
    assert apart(mine["averaged"], theirs["averaged"]) < 1e-5
    assert [found["step"] for found in mine["evaluations"]] == [
        found["step"] for found in theirs["evaluations"]
    ]
    for name, values in theirs["history"].items():
        assert np.allclose(ranks[1]["own_step"]["history"][name], values, atol=1e-5), name
    assert mine["evaluated"]["loss"] == pytest.approx(theirs["evaluated"]["loss"], abs=1e-5)


def test_a_loss_that_is_no_number_on_one_worker_stops_all_before_it(ranks: list[Any], one: Any) -> None:
    assert apart(ranks[1]["broken"], one["broken"]) < 1e-5
    for found in (*ranks, one):
        (event,) = found["broken"]["events"]
        assert (event["event"], event["step"]) == ("stop", 3)


def test_an_infinity_on_one_worker_leaves_the_step_out_on_all(ranks: list[Any], one: Any) -> None:
    for rank in ranks:
        mine, theirs = rank["overflown"], one["overflown"]
        assert (mine["updates"], mine["scale"]) == (theirs["updates"], theirs["scale"]) == (6, 2.0**14)
        assert mine["own"]["scale"] == theirs["own"]["scale"] == 32.0
        assert apart(mine, theirs) < 1e-3, "float16 rounds sums of other sizes otherwise"
        assert apart(mine["own"], theirs["own"]) < 1e-3


def test_a_stream_that_is_out_on_one_worker_ends_the_epoch_for_all(ranks: list[Any]) -> None:
    # Seven batches on the first worker, five on the second.
    assert [rank["streamed"]["updates"] for rank in ranks] == [10, 10]
    assert ranks[0]["streamed"]["history"] == ranks[1]["streamed"]["history"]


def test_workers_read_shares_rows_and_files(ranks: list[Any], one: Any) -> None:
    mine, other, theirs = (found["divided"] for found in (*ranks, one))
    assert apart(mine["reader"], theirs["reader"]) < 1e-5, "the same rows in every batch"
    for way in ("reader", "rows", "files"):
        assert mine[way]["bits"] == other[way]["bits"]
    every_row_once = sum(range(96))
    assert mine["rows"]["total"] == [every_row_once] * 3
    assert mine["files"]["total"] == [every_row_once] * 2


def test_xla_compiles_what_a_worker_computes_alone(ranks: list[Any], one: Any) -> None:
    mine, other, theirs = (found["compiled_alone"] for found in (*ranks, one))
    assert mine["asked"]["jit"] == "step"
    assert mine["compiled"] > 0
    assert mine["asked"]["bits"] == other["asked"]["bits"]
    assert apart(mine["asked"], mine["plain"]) < 1e-4
    for name, values in mine["plain"]["history"].items():
        assert np.allclose(mine["asked"]["history"][name], values, atol=1e-4), name
    assert apart(mine["own"], theirs["own"]) < 1e-5
    assert "no XLA: a layer adds up over the replicas" in mine["refused"]


def test_workers_use_xla_alike_where_it_was_tried(ranks: list[Any]) -> None:
    mine, other = (found["tried"] for found in ranks)
    assert mine["jit"] == other["jit"]
    assert any("XLA" in reason for reason in mine["reasons"])
    assert mine["figures"] == other["figures"]
    assert {"alone_none_us", "alone_step_us", "alone_compile_s"} <= set(mine["figures"])


def test_a_rate_is_multiplied_by_the_replicas_if_asked_for(ranks: list[Any], one: Any) -> None:
    for found in (*ranks, one):
        assert found["scaled"]["scaled"]["bits"] == found["scaled"]["given"]["bits"]
        assert found["scaled"]["scaled"]["rate"] == pytest.approx(0.01), (
            "callbacks see the rate that was given"
        )
    assert "rates times 2 for 2 replicas" in ranks[0]["scaled"]["scaled"]["line"]


def test_evaluate_and_predict_in_a_job(ranks: list[Any], one: Any) -> None:
    for rank in ranks:
        mine, theirs = rank["asked"], one["asked"]
        for when in ("before", "after"):
            assert mine[when].keys() == theirs[when].keys()
            assert list(mine[when].values()) == pytest.approx(list(theirs[when].values()), abs=1e-5)
        assert mine["listed"] == pytest.approx(theirs["listed"], abs=1e-5)
        assert np.allclose(mine["predicted"], theirs["predicted"], atol=1e-4)


def test_a_data_service_hands_every_row_to_one_worker(ranks: list[Any]) -> None:
    # Six batches of 16 rows, in halves; who asks first may get more, and then the last ones are left out.
    every_row_once = sum(range(96))
    for rank in ranks:
        assert rank["served"]["total"] == ranks[0]["served"]["total"]
        assert all(0 < total <= every_row_once for total in rank["served"]["total"])
        assert 0 < rank["served"]["updates"] <= 12


def test_a_step_makes_one_collective(ranks: list[Any]) -> None:
    assert ranks[0]["collectives"] == {"fit": 1, "trainer": 1}


@pytest.mark.skipif(
    not ALL_CASES, reason="make soak-cases: another job; the resumed ones have the same bits, too"
)
def test_two_jobs_have_the_same_bits(ranks: list[Any], tmp_path: Path) -> None:
    again = Job("cases.py", 2, tmp_path, "fitted", "dropped")
    try:
        for mine, theirs in zip(again.results(), ranks, strict=True):
            assert mine["fitted"]["bits"] == theirs["fitted"]["bits"]
            assert mine["dropped"]["bits"] == theirs["dropped"]["bits"]
    finally:
        again.kill()
