"""`stoker.tune`: a tf.data pipeline as fast as the machine allows, without changing one value."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from stoker import units
from stoker.data.tuning import comparing, effects, generators, rates, stage_costs, stages
from stoker.data.tuning.changes import (
    Change,
    Left,
    Module,
    Request,
    caching,
    generator_chunks,
    interleave_maps,
    map_behind_batch,
    parallel_calls,
    prefetching,
    row_numbers,
)
from stoker.data.tuning.figures import Kept, LeftAlone, Report
from stoker.data.tuning.rebuilding import CannotRebuild, comparable, fresh
from stoker.doctor.attach import announced
from stoker.errors import ArgumentError
from stoker.tf_internals.datasets import argument, has_argument

CHANGES: tuple[Module, ...] = (
    generator_chunks,
    interleave_maps,
    map_behind_batch,
    row_numbers,
    caching,
    parallel_calls,
    prefetching,
)
# A pipeline that gives so many times what its step takes needs no tuning.
_ENOUGH = 1.5
# How many rows are compared in each epoch, and at least how many elements.
_ROWS_COMPARED, _LEAST_COMPARED = 400, 5
# Of the memory that is free, the part that a cache may take.
_SHARE_OF_MEMORY = 0.25


def tune(ds: Any, step: Any = None, allow: str = comparing.EXACT, memory: int | str = "auto") -> Any:
    """A pipeline that gives the same elements, faster.

    The pipeline is run for some seconds: its sources must allow being read more than once. A change stays only if it
    was timed faster and every compared element was equal; what cannot be proven equal is left as it is. Epochs begin
    with the first: the result does not know how often `ds` has been iterated before.

    Args:
        ds: a `tf.data.Dataset`.
        step: what uses the elements: a function of one, or how many a second it takes. With it a pipeline that is fast
            enough is left alone.
        allow: "exact": equal in every bit; "last-place": floats may differ by rounding.
        memory: what a cache may take: bytes, a size such as "2 GiB", or "auto" for a quarter of what is free.

    Returns:
        A `tf.data.Dataset` with the attribute `tuning`: what was found and done. It is `ds` itself if nothing helped.

    Raises:
        ArgumentError: a value that makes no sense; a `ValueError`.
    """
    if not isinstance(ds, tf.data.Dataset) or not tf.executing_eagerly():
        raise ArgumentError(f"ds={ds!r} must be a tf.data.Dataset, outside of any tf.function")
    if allow not in comparing.ALLOWED:
        raise ArgumentError(f'allow={allow!r} must be "exact" or "last-place"')
    request = Request(_memory(memory), allow)
    timing = rates.Timing(step=rates.consumer(step))
    with announced.region(announced.TUNE):
        tuned, report = tuned_pipeline(ds, request, Timed(timing))
    for name, value in vars(ds).items():
        if not name.startswith("_") and not hasattr(tuned, name):
            setattr(tuned, name, value)
    tuned.tuning = report
    announced.tell(announced.TUNED, report=report.row())
    return tuned


@dataclass(frozen=True)
class Timed:
    """Keeps what was timed faster."""

    timing: rates.Timing

    def better(self, change: Change, pipeline: Any) -> Kept | None:
        """The change with its figures, if it is faster."""
        race = self.timing.in_turn(*self._in_later_epochs(pipeline, change.pipeline))
        if not race.won(self.timing.gain):
            return None
        return Kept(change.name, change.stage, race.first, race.second)

    def measure(self, report: Report, pipeline: Any, tuned: Any) -> bool:
        """Fill in the rates of both and the trees of their stages; whether all changes together are faster."""
        race = self.timing.steady(*self._in_later_epochs(pipeline, tuned))
        report.before, report.after = race.first, race.second
        report.before_per_cpu_s, report.after_per_cpu_s = race.by_cpu
        report.stages = stage_costs.measured(pipeline, self.timing.seconds)
        report.tuned = None if tuned is pipeline else stage_costs.measured(tuned, self.timing.seconds)
        return race.won(1.0)

    def _in_later_epochs(self, *pipelines: Any) -> tuple[Any, ...]:
        return tuple(fresh(caching.in_later_epochs(one, self.timing.seconds / 2)) for one in pipelines)

    def enough(self, report: Report, pipeline: Any) -> bool:
        """Whether the pipeline gives far more than the step takes."""
        if self.timing.step is None:
            return False
        seconds = self.timing.seconds
        report.step_per_s = rates.step_rate(self.timing.step, fresh(pipeline), seconds)
        alone = rates.Timing(seconds).rate(fresh(pipeline))
        return bool(report.step_per_s and alone and alone.per_s > _ENOUGH * report.step_per_s)


def tuned_pipeline(ds: Any, request: Request, judge: Any) -> tuple[Any, Report]:
    """The pipeline as it should be, and how that came about; `ds` itself if it stays as it is."""
    report = Report(rows_per_element=_rows(ds))
    why = _untouchable(ds)
    if why:
        report.left.append(LeftAlone("everything", stages.described(ds), why))
        return ds, report
    with _variables_restored(ds):
        original = fresh(ds)
        try:
            tuned = original
            if judge.enough(report, original):
                report.left.append(
                    LeftAlone("everything", stages.described(ds), "the step takes fewer than it gives")
                )
            else:
                tuned = _changed(original, request, judge, report)
            faster = judge.measure(report, original, tuned)
        except tf.errors.OpError as error:
            why = f"it fails: {_first_line(error)}"
            return ds, Report(left=[LeftAlone("everything", stages.described(ds), why)])
    if tuned is original or not faster:
        if tuned is not original:
            report.left.append(
                LeftAlone("everything", stages.described(ds), "together the changes gained nothing")
            )
        report.after, report.after_per_cpu_s = report.before, report.before_per_cpu_s
        report.tuned, report.changes = None, []
        return ds, report
    return fresh(tuned), report


def _changed(original: Any, request: Request, judge: Any, report: Report) -> Any:
    elements = max(_LEAST_COMPARED, _ROWS_COMPARED // (report.rows_per_element or 1))
    repeats = _repeats_itself(original, elements)
    report.compared = elements if repeats else 0
    current = original
    for module in CHANGES:
        tried: set[tuple[str, str]] = set()
        while (found := next(_untried(module, current, request, tried), None)) is not None:
            tried.add((found.name, found.stage))
            if isinstance(found, Left):
                report.left.append(LeftAlone(found.name, found.stage, found.why))
                continue
            # What was kept is equal to the original: to be equal to that is enough, and quicker to find out.
            differs = _difference(found, current if repeats else None, elements, request.allow)
            kept = None if differs else judge.better(found, current)
            if kept is not None:
                current = found.pipeline
                report.changes.append(kept)
            else:
                report.left.append(LeftAlone(found.name, found.stage, differs or "it is not faster"))
    return current


def _untried(module: Module, pipeline: Any, request: Request, tried: set[tuple[str, str]]) -> Iterator[Any]:
    try:
        for found in module.proposals(pipeline, request):
            if (found.name, found.stage) not in tried:
                yield found
    except tf.errors.OpError as error:
        # A row that cannot be read need not be in the way of other changes.
        failed = Left(module.NAME, stages.described(pipeline), f"it fails: {_first_line(error)}")
        if (failed.name, failed.stage) not in tried:
            yield failed


def _first_line(error: Any) -> str:
    return re.sub(r"{{.*?}}\s*", "", str(error.message)).strip().splitlines()[0][:160]


def _difference(change: Change, pipeline: Any, elements: int, allow: str) -> str | None:
    """Where the change makes a difference: in the piece it concerns, then in the whole pipeline if that repeats."""
    found = None
    if change.pieces is not None:
        found = comparing.difference(*change.pieces, elements, allow=allow)
    if found is None and pipeline is not None:
        # A new iterator over a repeated shuffle goes on where the old one was, which may have read ahead.
        repeated = any(stages.kind(stage) == "Repeat" for stage in stages.below(pipeline))
        epochs, length = (1, 2 * elements) if repeated else (2, elements)
        pair = comparable(pipeline), comparable(change.pipeline)
        found = comparing.difference(*pair, length, epochs, allow)
    return f"the result would differ: {found}" if found else None


def _repeats_itself(pipeline: Any, elements: int) -> bool:
    """Whether two runs of the pipeline give the same, so that it can be compared with another."""
    all_effects = [effects.of(f) for stage in stages.below(pipeline) for f in stages.functions(stage)]
    if any(found.unseeded or found.variables for found in all_effects):
        return False
    if not any(found.python for found in all_effects):
        return True
    return comparing.difference(comparable(pipeline), comparable(pipeline), elements, epochs=1) is None


def _untouchable(ds: Any) -> str | None:
    """Why a pipeline must not even be run for a measurement; None if it may."""
    for stage in stages.below(ds):
        if type(stage).__module__.startswith("stoker."):
            return "it comes from stoker.data, which reads at full speed as it is"
        for function in stages.functions(stage):
            lasting = sorted(set(effects.of(function).lasting))
            if lasting:
                return (
                    f"{stages.described(stage)} leaves something behind when it runs ({', '.join(lasting)})"
                )
        if stages.is_generator(stage):
            found = generators.source(stage)
            if found is not None and not generators.starts_anew(found):
                return "its generator hands out one iterator, which can be read only once"
    try:
        fresh(ds)
    except CannotRebuild as why:
        return str(why)
    return None


@contextlib.contextmanager
def _variables_restored(ds: Any) -> Iterator[None]:
    """Variables that the functions change, such as the state of a random generator, are put back as they were."""
    functions = [function for stage in stages.below(ds) for function in stages.functions(stage)]
    changing = [function for function in functions if effects.of(function).changes_variables]
    kept = [(variable, tf.identity(variable)) for one in changing for variable in effects.variables(one)]
    try:
        yield
    finally:
        for variable, value in kept:
            variable.assign(value)


def _rows(ds: Any) -> int | None:
    """How many rows an element has: by the last batch stage, if nothing takes its batches apart again."""
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
