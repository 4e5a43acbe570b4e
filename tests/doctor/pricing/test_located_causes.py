"""Prices that were wrong, each as the smallest steps that show why."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Any

import pytest

from stoker.doctor.pricing import prices
from stoker.doctor.pricing import program as programs
from stoker.doctor.pricing.claims import repair_of
from stoker.doctor.pricing.feeding import source_of
from stoker.doctor.pricing.recorded_steps import with_device
from stoker.doctor.replay.pieces import Piece
from stoker.doctor.replay.simulation import Draw, replay
from stoker.records import (
    Finding,
    PipelineRow,
    PipelineStage,
    Record,
    StageRow,
    Timeline,
    TimelineWindow,
    WindowSums,
)
from tests.doctor.pricing.test_simulation import LINE, recorded
from tests.samples import sample_finding, sample_record

STEPS = 16


def two_predicts_and_a_tape() -> Record:
    """Steps of 100 ms: two lines of 45 ms of predict() each, and 10 ms of something else."""
    host: list[list[Any]] = []
    marks = []
    for n in range(STEPS):
        start = n * 0.1
        marks.append([start, start + 0.1])
        host.append([start, start + 0.06, "eager", -1, "", 0.0])
        host.append([start + 0.06, start + 0.09, "dispatch", -1, "", 0.0])
        host.append([start + 0.09, start + 0.1, "python", -1, "", 0.0])
    accounts = {"eager": 0.96, "dispatch": 0.48, "python": 0.16}
    record = recorded(host, marks, seconds=1.6, steps=STEPS, accounts=accounts)
    lines = [predict(8), predict(9)]
    return dataclasses.replace(record, findings=lines)


def predict(line: int) -> Finding:
    return sample_finding(
        kind="predict-in-loop",
        line=line,
        count=STEPS,
        seconds=0.045 * STEPS,
        lost_s=0.045 * STEPS,
        what_if=None,
        detail={"rows_per_call": 1.0},
    )


def test_of_two_predicts_one_leaves_the_other() -> None:
    """Each was promised everything: 37x for one line, 1,489x for both."""
    done = prices.price_record(two_predicts_and_a_tape())
    alone = [f.what_if for f in done.findings if f.what_if]
    # What the call in its place takes is not there; the rest is quicker without it.
    half = 0.55 * (1 - 0.45 * statistics.fmean(repair_of("predict-in-loop").beside))
    assert [price.speedup for price in alone] == pytest.approx([1 / half] * 2, rel=0.02)
    assert all(price.share == pytest.approx(0.45, rel=0.01) for price in alone)
    assert done.what_if is not None
    assert done.what_if.all is not None
    assert (
        8 < done.what_if.all.speedup <= 1 / (0.1 * (1 - 0.9 * repair_of("predict-in-loop").beside[1])) + 0.001
    )


def test_a_first_call_that_took_long_is_no_lines_of_the_steps() -> None:
    """The sums of both lines hold a first call of a second, before the first step's end: two equal lines stay equal."""
    record = two_predicts_and_a_tape()
    slow = [dataclasses.replace(f, seconds=(f.seconds or 0.0) + 1.0) for f in record.findings]
    done = prices.price_record(dataclasses.replace(record, findings=slow))
    first, second = [f.what_if.speedup for f in done.findings if f.what_if]
    assert first == pytest.approx(second, rel=0.02)


def test_what_is_not_labelled_is_shared_by_what_each_line_took() -> None:
    """Two lines of reads, of which the windows saw none: 30 ms and 10 ms of 50."""
    marks = [[n * 0.01, (n + 1) * 0.01] for n in range(STEPS)]
    host: list[list[Any]] = [[start, end, "python", -1, "", 0.0] for start, end in marks]
    record = recorded(
        host,
        marks,
        seconds=0.05 * STEPS,
        steps=STEPS,
        accounts={"python": 0.01 * STEPS, "sync": 0.04 * STEPS},
    )
    run = programs.of(record)
    assert run is not None
    reads = [sample_finding(line=line, seconds=s * STEPS, what_if=None) for line, s in ((5, 0.03), (6, 0.01))]
    assert prices.speedup(run, reads[:1], Draw()) == pytest.approx(50 / 20.6, rel=0.01)
    assert prices.speedup(run, reads[1:], Draw()) == pytest.approx(50 / 40.2, rel=0.01)


def test_a_read_in_mid_step_does_not_make_its_wait_the_devices_work() -> None:
    """50 ms of launches, a read that waits 9 us: the device was busy for 1 ms of it, as its own book says."""
    step = [Piece("eager", 0.050), Piece("sync", 0.0001, LINE, wait=0.000009), Piece("eager", 0.050)]
    (given,) = with_device([step], 0.001)
    assert sum(piece.device for piece in given) == pytest.approx(0.001)
    assert replay([given] * 20, None, True) == pytest.approx(0.1001, rel=1e-3)
    one_call = [dataclasses.replace(piece, seconds=0.0002) for piece in given if piece.account == "eager"]
    assert replay([one_call] * 20, None, True) < 0.0015


def test_the_wait_of_a_read_is_kept_where_the_device_is_known_to_be_idle_before() -> None:
    step = [Piece("graph", 0.002), Piece("sync", 0.006, LINE, wait=0.005)]
    (given,) = with_device([step], 0.006)
    assert replay([given] * 20, None, True) == pytest.approx(0.008, rel=1e-3)
    without = [given[0]]
    assert replay([without] * 20, None, True) == pytest.approx(0.007, rel=0.15)


def test_a_read_waits_for_what_the_step_before_launched() -> None:
    """Steps end with the launch; the next one begins with a read that waits 60 ms for it."""
    step = [Piece("sync", 0.060, LINE, wait=0.060), Piece("python", 0.030), Piece("graph", 0.001)]
    given = with_device([step] * 10, 0.020)
    assert all(piece.device >= 0.060 for one in given[:-1] for piece in one if piece.account == "graph")
    without = [[piece for piece in one if piece.account != "sync"] for one in given[:-1]]
    assert replay(without, None, True) == pytest.approx(0.061, rel=0.05)


def feeding_record(stages: list[str], wait: float) -> tuple[Record, list[list[Piece]]]:
    """Steps of 10 ms that wait for an element; no window of the profiler saw the pipeline."""
    record = recorded([], [[0.0, 0.01]], seconds=0.01 * STEPS, steps=STEPS)
    row = PipelineRow(stages=[PipelineStage(name=n) for n in stages], elements=STEPS, wait_s=0.0)
    steps = [[Piece("input", wait, LINE), Piece("compute", 0.01 - wait, LINE)]] * STEPS
    return dataclasses.replace(record, tables=dataclasses.replace(record.tables, pipelines=[row])), steps


@pytest.mark.parametrize(
    ("stages", "ahead"),
    [(["Batch", "Map", "TensorSlice"], False), (["Prefetch", "Batch"], True), (["ParallelMap"], True)],
)
def test_a_pipeline_no_window_saw_is_as_the_program_built_it(stages: list[str], ahead: bool) -> None:
    source = source_of(*feeding_record(stages, 0.005), 0.01, 1.0)
    assert source is not None
    assert bool(source.ahead) is ahead


@pytest.mark.parametrize(("ran", "ahead"), [("BatchV2::Map", False), ("MapAndBatch::Range", True)])
def test_a_pipeline_is_as_it_ran(ran: str, ahead: bool) -> None:
    """TensorFlow fuses map and batch, and makes batches ahead where the program asked for nothing of the sort."""
    record, steps = feeding_record(["Batch", "Map", "Range"], 0.005)
    rows = [StageRow(path=f"Iterator::Root::{ran}", calls=STEPS, self_s=0.1)]
    rows.insert(0, StageRow(path=rows[0].path.rpartition("::")[0], calls=STEPS, self_s=0.1))
    record = dataclasses.replace(record, tables=dataclasses.replace(record.tables, stages=rows))
    source = source_of(record, steps, 0.01, 1.0)
    assert source is not None
    assert bool(source.ahead) is ahead


def test_stages_are_as_slow_as_they_are_without_other_programs() -> None:
    """The profiler saw 4 ms an element beside programs that had the processors for three quarters of the time."""
    record, _ = feeding_record(["Prefetch", "Map"], 0.0)
    works = {"Iterator::Root::Prefetch": 0.0, "Iterator::Root::Prefetch::Map": 0.004 * STEPS}
    rows = [StageRow(path=path, calls=STEPS, self_s=seconds) for path, seconds in works.items()]
    record = dataclasses.replace(record, tables=dataclasses.replace(record.tables, stages=rows))
    steps = [[Piece("input", 0.00001, LINE), Piece("dispatch", 0.00999, LINE)]] * STEPS
    source = source_of(record, steps, 0.01, 0.25)
    assert source is not None
    assert source.seconds == pytest.approx(0.001)


def test_asking_for_an_element_that_is_there_is_no_starvation() -> None:
    """A step of 2 ms that takes 0.25 ms to ask was taken for one that an input of 2 ms an element holds up."""
    record, _ = feeding_record(["Prefetch", "Batch"], 0.0)
    steps = [[Piece("input", 0.00025, LINE), Piece("dispatch", 0.00175, LINE)]] * STEPS
    source = source_of(record, steps, 0.002, 1.0)
    assert source is not None
    assert source.seconds < 0.001


def test_iterators_that_come_and_go_are_no_pipeline_at_work() -> None:
    record, _ = feeding_record(["Prefetch", "Batch"], 0.0)
    steps = [[Piece("input", 0.004, LINE, "first element"), Piece("input", 0.001, LINE)]] * STEPS
    assert source_of(record, steps, 0.005, 1.0) is None


def test_kernels_that_lost_their_processor_do_not_make_an_eager_step_free() -> None:
    """A busy machine: the windows' kernels seem to take all of the time, undisturbed a twentieth."""
    marks = [[n * 0.1, (n + 1) * 0.1] for n in range(STEPS)]
    host: list[list[Any]] = [[start, end, "eager", -1, "", 0.0] for start, end in marks]
    phase = {"eager_ops": 100 * STEPS, "eager_s": 0.1 * STEPS, "eager_op_s": 0.1 * STEPS}
    record = recorded(host, marks, seconds=0.1 * STEPS, steps=STEPS, accounts={"eager": 0.1 * STEPS}, **phase)
    windows = WindowSums(eager_ns=10**9, eager_kernel_ns=10**9, eager_kernels=1000, eager_floor_ns=10**6)
    eager = sample_finding(kind="eager-train-step", seconds=0.1 * STEPS, lost_s=0.05 * STEPS, what_if=None)

    def price(calm_ns: int, wide_ns: int = 0) -> float:
        told = dataclasses.replace(windows, eager_calm_ns=calm_ns, eager_wide_ns=wide_ns)
        tables = dataclasses.replace(record.tables, windows=[told])
        run = programs.of(dataclasses.replace(record, tables=tables))
        assert run is not None
        return prices.speedup(run, [eager], Draw())

    assert price(0) < 1.5
    assert price(50 * 10**6) > 8
    # Kernels that use all processors by themselves gain nothing by running side by side.
    assert price(500 * 10**6, wide_ns=500 * 10**6) < price(500 * 10**6) / 1.2


@pytest.mark.parametrize(
    ("cores", "cpu_s", "stretch"),
    [
        # All of the one processor's time was the program's own: what its main thread waited for was itself.
        (1, 10.0, 1.0),
        (1, 6.0, 10 / 6),
        (2, 10.0, 10 / 5),
    ],
)
def test_waiting_for_threads_of_ones_own_is_no_load_of_others(
    cores: int, cpu_s: float, stretch: float
) -> None:
    window = TimelineWindow(0.0, 10.0, [], [], cpu_s=cpu_s, cpu_wall_s=10.0, delayed_s=5.0)
    record = dataclasses.replace(sample_record(), timeline=Timeline(windows=[window]))
    assert programs.stretch_of(record, cores) == pytest.approx(stretch)


def test_what_the_steps_do_not_show_has_no_price() -> None:
    """The run lost half of its time to saves, and no step has any: that is unknown, not 1.00x."""
    marks = [[n * 0.01, (n + 1) * 0.01] for n in range(STEPS)]
    host: list[list[Any]] = [[start, end, "python", -1, "", 0.0] for start, end in marks]
    record = recorded(host, marks, seconds=0.01 * STEPS, steps=STEPS, accounts={"python": 0.01 * STEPS})
    lost = sample_finding(kind="checkpoint-in-loop", seconds=0.1, lost_s=0.1, what_if=None)
    done = prices.price_record(dataclasses.replace(record, findings=[lost]))
    assert done.findings[0].what_if is None


def test_a_model_called_between_two_tapes_has_a_price_of_its_own() -> None:
    """Its ops bear the label of the tape before them: they had no price, and that tape's was too high."""
    host: list[list[Any]] = []
    marks = []
    for n in range(STEPS):
        start = n * 0.1
        marks.append([start, start + 0.1])
        host.append([start, start + 0.1, "eager", 0, "tape", 0.0])
    ops = {"eager_ops": 100 * STEPS, "eager_s": 0.1 * STEPS, "eager_op_s": 0.1 * STEPS}
    sums = {"seconds": 0.1 * STEPS, "steps": STEPS, "accounts": {"eager": 0.1 * STEPS}}
    record = recorded(host, marks, **sums, **ops)

    def found(kind: str, line: int, seconds: float) -> Finding:
        taken = {"seconds": seconds * STEPS, "lost_s": seconds * STEPS, "count": 10 * STEPS}
        return sample_finding(kind=kind, line=line, what_if=None, detail={"ops": 10 * STEPS}, **taken)

    tape, called = found("eager-train-step", LINE[1], 0.06), found("launch-bound", 19, 0.04)
    done = prices.price_record(dataclasses.replace(record, findings=[tape, called]))
    shares = {f.kind: f.what_if.share for f in done.findings if f.what_if}
    assert shares == pytest.approx({"eager-train-step": 0.6, "launch-bound": 0.4}, rel=0.01)
