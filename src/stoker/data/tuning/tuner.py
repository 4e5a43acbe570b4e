"""`stoker.tune`: make a tf.data pipeline as fast as the machine allows, without changing a value."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import tensorflow as tf

from stoker import units
from stoker.data.tuning import comparing, effects, generators, rates, stage_costs, stages
from stoker.data.tuning.changes import (
    ChangeModule,
    PipelineChange,
    Proposals,
    TuningRequest,
    caching,
    generator_chunks,
    interleave_maps,
    map_behind_batch,
    parallel_calls,
    prefetching,
    row_numbers,
)
from stoker.data.tuning.figures import KeptChange, LeftAlone, TuningReport
from stoker.data.tuning.rebuilding import CannotRebuild, make_comparable, renew
from stoker.doctor.attach import announced
from stoker.errors import ArgumentError, first_line
from stoker.tf_internals.datasets import argument, has_argument
from stoker.tf_internals.types import Dataset

CHANGES: tuple[ChangeModule, ...] = (
    generator_chunks,
    interleave_maps,
    map_behind_batch,
    row_numbers,
    caching,
    parallel_calls,
    prefetching,
)
# A pipeline that is this many times as fast as its step needs no tuning.
_ENOUGH = 1.5
# How many rows are compared in each epoch, and the least number of elements.
_ROWS_COMPARED, _LEAST_COMPARED = 400, 5
# The share of the free memory that a cache may take.
_SHARE_OF_MEMORY = 0.25


def tune(
    ds: Dataset,
    step: rates.Step | float | None = None,
    allow: str = comparing.EXACT,
    memory: int | str = "auto",
) -> Dataset:
    """Make a pipeline that gives the same elements faster.

    This runs the pipeline for some seconds, so its sources must be readable more than once. A change is kept only if it
    was measured to be faster and every compared element was equal; what cannot be proven equal stays as it is. The
    result starts at the first epoch, however often `ds` has been iterated before.

    Args:
        ds: a `tf.data.Dataset`.
        step: what uses the elements: a function of one element, or a number of elements per second. A pipeline that is
            fast enough for the step is left alone.
        allow: "exact": every bit is equal; "last-place": floats may differ by rounding.
        memory: how much a cache may take: bytes, a size such as "2 GiB", or "auto" for a quarter of the free memory.

    Returns:
        A `tf.data.Dataset` whose attribute `tuning` is the report. It is `ds` itself if nothing helped.

    Raises:
        ArgumentError: an argument is invalid; it is a `ValueError`.
    """
    if not isinstance(ds, tf.data.Dataset) or not tf.executing_eagerly():
        raise ArgumentError(
            f"ds={ds!r} must be a tf.data.Dataset, and tune must be called outside of any tf.function"
        )
    if allow not in comparing.ALLOWED:
        raise ArgumentError(f'allow={allow!r} must be "exact" or "last-place"')
    request = TuningRequest(_memory(memory), allow)
    timing = rates.Timing(step=rates.make_consumer(step))
    with announced.region(announced.TUNE):
        tuned, report = tune_pipeline(ds, request, TimedJudge(timing))
    for name, value in vars(ds).items():
        if not name.startswith("_") and not hasattr(tuned, name):
            setattr(tuned, name, value)
    tuned.tuning = report
    announced.tell(announced.TUNED, report=report.row())
    return tuned


class Judge(Protocol):
    """Decides which changes to keep."""

    def better(self, change: PipelineChange, pipeline: Dataset) -> KeptChange | None:
        """Return the change with its figures; None if it is not worth keeping."""

    def measure(self, report: TuningReport, pipeline: Dataset, tuned: Dataset) -> bool:
        """Fill in the figures of both pipelines. Return whether all changes together are faster."""

    def enough(self, report: TuningReport, pipeline: Dataset) -> bool:
        """Return whether the pipeline needs no tuning."""


@dataclass(frozen=True)
class TimedJudge:
    """Keeps the changes that were measured to be faster."""

    timing: rates.Timing

    def better(self, change: PipelineChange, pipeline: Dataset) -> KeptChange | None:
        race = self.timing.race_in_turn(*self._shorten_first_epochs(pipeline, change.pipeline))
        if not race.is_faster(self.timing.gain):
            return None
        return KeptChange(change.name, change.stage, race.first, race.second)

    def measure(self, report: TuningReport, pipeline: Dataset, tuned: Dataset) -> bool:
        race = self.timing.race_steadily(*self._shorten_first_epochs(pipeline, tuned))
        report.before, report.after = race.first, race.second
        report.before_per_cpu_s, report.after_per_cpu_s = race.by_cpu
        report.stages = stage_costs.measure_stages(pipeline, self.timing.seconds)
        report.tuned = None if tuned is pipeline else stage_costs.measure_stages(tuned, self.timing.seconds)
        return race.is_faster(1.0)

    def _shorten_first_epochs(self, *pipelines: Dataset) -> tuple[Dataset, ...]:
        return tuple(renew(caching.shorten_first_epoch(one, self.timing.seconds / 2)) for one in pipelines)

    def enough(self, report: TuningReport, pipeline: Dataset) -> bool:
        if self.timing.step is None:
            return False
        seconds = self.timing.seconds
        report.step_per_s = rates.step_rate(self.timing.step, renew(pipeline), seconds)
        alone = rates.Timing(seconds).rate(renew(pipeline))
        return bool(report.step_per_s and alone and alone.per_s > _ENOUGH * report.step_per_s)


def tune_pipeline(ds: Dataset, request: TuningRequest, judge: Judge) -> tuple[Dataset, TuningReport]:
    """Return the tuned pipeline and the report; `ds` itself if nothing helped."""
    report = TuningReport(rows_per_element=_rows(ds))
    why = _explain_untouchable(ds)
    if why:
        report.left.append(_leave_alone(ds, why))
        return ds, report
    with _restore_variables(ds):
        original = renew(ds)
        try:
            tuned = original
            if judge.enough(report, original):
                report.left.append(_leave_alone(ds, "it is faster than the step"))
            else:
                tuned = _try_changes(original, request, judge, report)
            faster = judge.measure(report, original, tuned)
        except tf.errors.OpError as error:
            return ds, TuningReport(left=[_leave_alone(ds, f"it fails: {_shorten_message(error)}")])
    if tuned is original or not faster:
        if tuned is not original:
            report.left.append(_leave_alone(ds, "together the changes gained nothing"))
        report.after, report.after_per_cpu_s = report.before, report.before_per_cpu_s
        report.tuned, report.changes = None, []
        return ds, report
    return renew(tuned), report


def _leave_alone(ds: Dataset, why: str) -> LeftAlone:
    return LeftAlone("everything", stages.describe(ds), why)


def _try_changes(original: Dataset, request: TuningRequest, judge: Judge, report: TuningReport) -> Dataset:
    elements = max(_LEAST_COMPARED, _ROWS_COMPARED // (report.rows_per_element or 1))
    repeats = _repeats_itself(original, elements)
    report.compared = elements if repeats else 0
    current = original
    for module in CHANGES:
        tried: set[tuple[str, str]] = set()
        while (found := next(_propose_untried(module, current, request, tried), None)) is not None:
            tried.add((found.name, found.stage))
            if isinstance(found, LeftAlone):
                report.left.append(found)
                continue
            # The current pipeline equals the original, so comparing with it is enough, and faster.
            differs = _difference(found, current if repeats else None, elements, request.allow)
            kept = None if differs else judge.better(found, current)
            if kept is not None:
                current = found.pipeline
                report.changes.append(kept)
            else:
                report.left.append(LeftAlone(found.name, found.stage, differs or "it is not faster"))
    return current


def _propose_untried(
    module: ChangeModule, pipeline: Dataset, request: TuningRequest, tried: set[tuple[str, str]]
) -> Proposals:
    try:
        for found in module.proposals(pipeline, request):
            if (found.name, found.stage) not in tried:
                yield found
    except tf.errors.OpError as error:
        # An element that cannot be read does not rule out other changes.
        failed = LeftAlone(module.NAME, stages.describe(pipeline), f"it fails: {_shorten_message(error)}")
        if (failed.name, failed.stage) not in tried:
            yield failed


def _shorten_message(error: tf.errors.OpError) -> str:
    line = first_line(re.sub(r"{{.*?}}\s*", "", str(error.message)))
    return (line or type(error).__name__)[:160]


def _difference(change: PipelineChange, pipeline: Dataset | None, elements: int, allow: str) -> str | None:
    """Say where the change alters elements: in the changed piece, then in the whole pipeline if it is repeatable."""
    found = None
    if change.pieces is not None:
        found = comparing.difference(*change.pieces, elements, allow=allow)
    if found is None and pipeline is not None:
        # After a repeated shuffle, a new iterator continues where the old one was, which may have read ahead.
        repeated = any(stages.kind(stage) == "Repeat" for stage in stages.list_stages(pipeline))
        epochs, length = (1, 2 * elements) if repeated else (2, elements)
        pair = make_comparable(pipeline), make_comparable(change.pipeline)
        found = comparing.difference(*pair, length, epochs, allow)
    return f"the result would differ: {found}" if found else None


def _repeats_itself(pipeline: Dataset, elements: int) -> bool:
    """Return whether two runs of the pipeline give the same elements, so that others can be compared with it."""
    all_effects = [
        effects.find_effects(f) for stage in stages.list_stages(pipeline) for f in stages.functions(stage)
    ]
    if any(found.unseeded or found.variables for found in all_effects):
        return False
    if not any(found.python for found in all_effects):
        return True
    return (
        comparing.difference(make_comparable(pipeline), make_comparable(pipeline), elements, epochs=1) is None
    )


def _explain_untouchable(ds: Dataset) -> str | None:
    """Say why a pipeline must not be run, not even to measure it; None if it may be."""
    for stage in stages.list_stages(ds):
        if type(stage).__module__.startswith("stoker."):
            return "it comes from stoker.data, which is fast already"
        for function in stages.functions(stage):
            lasting = sorted(set(effects.find_effects(function).lasting))
            if lasting:
                return f"{stages.describe(stage)} has lasting effects ({', '.join(lasting)})"
        if stages.is_generator(stage):
            found = generators.source(stage)
            if found is not None and not generators.does_start_anew(found):
                return "its generator returns the same iterator each time, which can be read only once"
    try:
        renew(ds)
    except CannotRebuild as why:
        return str(why)
    return None


@contextlib.contextmanager
def _restore_variables(ds: Dataset) -> Iterator[None]:
    """Restore the variables that functions change, such as the state of a random generator, after the block."""
    functions = [function for stage in stages.list_stages(ds) for function in stages.functions(stage)]
    changing = [function for function in functions if effects.find_effects(function).changes_variables]
    kept = [(variable, tf.identity(variable)) for one in changing for variable in effects.variables(one)]
    try:
        yield
    finally:
        for variable, value in kept:
            variable.assign(value)


def _rows(ds: Dataset) -> int | None:
    """Return how many rows an element has, by the last batch stage; None if its batches are taken apart again."""
    stage = ds
    while len(below := stages.inputs(stage)) == 1 and stages.kind(stage) not in ("Unbatch", "FlatMap"):
        if has_argument(stage, "batch_size"):
            return int(stages.constant(argument(stage, "batch_size")))
        (stage,) = below
    return None


def _memory(given: int | str) -> int:
    if given == "auto":
        return int(_free_memory() * _SHARE_OF_MEMORY)
    size = units.bytes_of(given) if isinstance(given, str) else given
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise ArgumentError(f'memory={given!r} must be bytes, a size such as "2 GiB", or "auto"')
    return size


def _free_memory() -> int:
    with contextlib.suppress(OSError), open("/proc/meminfo", encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
