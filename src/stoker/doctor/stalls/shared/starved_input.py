"""Find the pipelines that keep the step waiting, and the stage of each that is to blame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING

from stoker.doctor.probes.measurements import Books
from stoker.doctor.probes.parts.device import DevicePart
from stoker.doctor.probes.parts.functions import first_call_ns
from stoker.doctor.probes.parts.input import InputPart
from stoker.doctor.probes.parts.steps import StepsPart
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.probes.pipelines import (
    StageTime,
    does_make_ahead,
    find_slow_stage,
    is_cached,
    is_generator,
    stage_name,
)
from stoker.doctor.stalls.shared.draft import Draft, find_commonest_site

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements
    from stoker.doctor.probes.pipelines import Pipeline, UserStage

# A pipeline is fine if it keeps the step waiting for less than this share of the run.
_MIN_SHARE = 0.01
# The time of a map cheaper than this per element is mostly the overhead of its call.
_CHEAP_MAP_NS = 150_000
# A pipeline keeps up if it makes an element in less than this share of the time available.
_AT_EASE = 0.25
_FUNCTION_CALL_NS = 20_000
_WITH_FUNCTION = ("Map", "ParallelMap", "FlatMap", "Filter", "Interleave", "ParallelInterleave")
_BATCHES = ("Batch", "ParallelBatch", "PaddedBatch")
# Remedies by the name of the slow stage.
_REMEDIES = (
    (
        ("Shuffle", "ShuffleAndRepeat"),
        "shuffle row numbers (Dataset.range(n).shuffle(n)) and gather whole batches of rows by them, as "
        "stoker.tune(ds) can, or shuffle files and keep the buffer small.",
    ),
    (
        (*_BATCHES, "TensorSlice", "Unbatch"),
        "it works row by row. Let the source hand out whole batches (gather them by shuffled row numbers, as "
        "stoker.tune(ds) can), or keep the rows on the device, as stoker.fit does.",
    ),
    (
        ("Map", "ParallelMap", "MapAndBatch", "FlatMap"),
        "map whole batches after batch(), and cache() what is the same in every epoch; stoker.tune(ds) tries both.",
    ),
    (
        ("TFRecord", "TextLine", "FixedLengthRecord", "Interleave", "ParallelInterleave", "CSV"),
        "read several files at a time (interleave with num_parallel_calls) with a large buffer and parse whole "
        "batches, or let stoker.data parse the files once.",
    ),
    (("Filter",), "filter once beforehand and save the result, or filter whole batches."),
)
_MAPS = ("Map", "ParallelMap")
_MAPPED_BATCHES = (
    "it maps whole batches already. cache() what is the same in every epoch, or do that part once beforehand and save "
    "it; what is drawn again for every batch may move into the model, where the device computes it."
)
_CACHED = (
    "cache() keeps its results, so only the first pass waits for it. If that takes too long, do its work once "
    "beforehand and save the result."
)


class Cause(Enum):
    """The cause that slows down a pipeline that keeps the step waiting."""

    PYTHON = auto()
    SERIAL_MAP = auto()
    CHEAP_MAP = auto()
    NOTHING_AHEAD = auto()
    SLOW_STAGE = auto()


def find_starved_pipelines(m: Measurements, cause: Cause) -> Iterator[Draft]:
    """Yield a draft for each pipeline that keeps the program waiting for this cause."""
    in_graph, pipelines = 0, m[InputPart].pipelines
    if m[DevicePart].kind == "CPU":
        in_graph = int((m[Books].totals["graph"] - first_call_ns(m)) * m[WindowsPart].graph_input_share)
    fed_in_graph = [p for p in pipelines if not p.elements and _users_stages(p)]
    for pipeline in pipelines:
        wait = pipeline.wait_ns
        if fed_in_graph and pipeline is max(fed_in_graph, key=lambda p: p.iterators):
            # Profiler windows do not say which iterator a graph waited for. It is one that is passed to the graph.
            wait += in_graph
        if wait >= m[Books].wall_ns * _MIN_SHARE and _users_stages(pipeline) and not _keeps_up(m, pipeline):
            blamed, draft = _blame(m, pipeline, wait)
            if blamed is cause:
                yield draft


def is_behind_batch(names: Sequence[str]) -> bool:
    """Return whether a stage gets whole batches from the stages before it, which are listed nearest first."""
    return any(name in _BATCHES for name in names) and "Unbatch" not in names


def _keeps_up(m: Measurements, pipeline: Pipeline) -> bool:
    """Return whether a pipeline makes elements ahead of their use, and in far less time than it has for each.

    The step then waits for a processor of a busy machine or for Python's lock, not for the pipeline.
    """
    if not pipeline.ran or not pipeline.elements or not does_make_ahead(pipeline):
        return False
    return (
        _measure_making_ns(pipeline)
        < _AT_EASE * (m[StepsPart].phase.ns or m[Books].wall_ns) / pipeline.elements
    )


def _measure_making_ns(pipeline: Pipeline) -> float:
    """Return the time to make an element. tf.data's statistics below a `repeat` cover only its last round."""
    whole, rounds = 0.0, 1.0
    for at, (name, count, ns) in enumerate(pipeline.ran):
        whole += rounds * max(ns, count * _call_ns(name))
        if name.endswith("Repeat") and at + 1 < len(pipeline.ran):
            rounds *= max(1.0, count / max(1, pipeline.ran[at + 1][1]))
    return whole / max(1, pipeline.ran[0][1])


def _call_ns(stage: str) -> int:
    """Return the least time of one call of a stage: tf.data's statistics leave out the overhead of its function."""
    return _FUNCTION_CALL_NS if stage.startswith(_WITH_FUNCTION) else 0


def _users_stages(pipeline: Pipeline) -> list[UserStage]:
    return [stage for stage in pipeline.stages if stage.site is not None]


def _read_stages(m: Measurements, pipeline: Pipeline) -> dict[str, StageTime]:
    """Return the stages by path, from the profiler's windows or else from tf.data's own statistics."""
    seen = m[WindowsPart].summary.stages
    if seen or not pipeline.ran:
        return seen
    stages, path = {}, "Iterator"
    for name, elements, ns in pipeline.ran:
        path = f"{path}::{name}"
        stages[path] = StageTime(elements, ns)
    return stages


def _blame(m: Measurements, pipeline: Pipeline, wait: int) -> tuple[Cause, Draft]:
    stages, ran = _users_stages(pipeline), _read_stages(m, pipeline)
    slow = find_slow_stage(ran)
    culprit = _stage_for(stages, slow) if slow else None
    prefetched = any("::Prefetch" in path for path in ran) or stages[0].name == "Prefetch"
    detail: dict[str, object] = {
        "pipeline": [stage.name for stage in reversed(stages)],
        "ran_as": max(ran, key=len, default=""),
        "slow_stage": stage_name(slow) if slow else None,
        "elements": pipeline.elements,
    }
    if slow is not None and is_cached(slow):
        detail["cached"] = True
    cause, stage, remedy = Cause.SLOW_STAGE, culprit or stages[0], None
    python = [s for s in stages if s.python]
    if python and (
        culprit is None
        or culprit.python
        or culprit is stages[-1]
        or (slow is not None and is_generator(slow))
    ):
        cause, stage = Cause.PYTHON, python[0]
    elif culprit is not None and culprit.name == "Map" and not culprit.parallel:
        cheap = _is_cheap_before_batch(ran, stages, culprit, slow)
        cause = Cause.CHEAP_MAP if cheap else Cause.SERIAL_MAP
    elif not prefetched and (culprit is None or not culprit.parallel):
        cause, stage = Cause.NOTHING_AHEAD, stages[0]
    elif slow:
        if detail.get("cached"):
            remedy = f"The {stage_name(slow)} stage is the slow one: {_CACHED}"
        else:
            remedy = _stage_remedy(stage_name(slow), [s.name for s in stages])
    site = stage.site or find_commonest_site(pipeline.sites)
    if site is None:
        raise AssertionError("a stage of the user's has a site")
    count = pipeline.elements or m[StepsPart].count
    return cause, Draft(site, count, wait, wait, wait_ns=wait, remedy=remedy, detail=detail)


def _stage_remedy(name: str, stages: Sequence[str] = ()) -> str:
    """Return the remedy for a slow stage of a pipeline with these stages, listed with the source last."""
    helps = "do its work once beforehand, or for a whole batch at a time."
    below = stages[stages.index(name) + 1 :] if name in stages else ()
    if name in _MAPS and is_behind_batch(below):
        helps = _MAPPED_BATCHES
    else:
        helps = next((remedy for names, remedy in _REMEDIES if name in names), helps)
    return f"The {name} stage is the slow one: {helps}"


def _is_cheap_before_batch(
    ran: dict[str, StageTime], stages: list[UserStage], culprit: UserStage, slow: str | None
) -> bool:
    """Return whether the slow stage is a cheap map before a batch, which is called too often.

    Other maps are just serial.
    """
    batched_after = any(stage.name in ("Batch", "ParallelBatch") for stage in stages[: stages.index(culprit)])
    time = ran.get(slow or "")
    per_element = time.self_ns / time.calls if time and time.calls else 0
    return stage_name(slow or "") != "MapAndBatch" and batched_after and per_element < _CHEAP_MAP_NS


def _stage_for(stages: list[UserStage], path: str) -> UserStage | None:
    """Return the user's stage for a path such as `Iterator::Root::Prefetch::MapAndBatch::Range`.

    TensorFlow rewrites pipelines before it runs them: it fuses map and batch, makes pure maps parallel, adds a
    prefetch. The path refers to the last stage of that name, counted from the source.
    """
    name = stage_name(path)
    wanted = {
        "MapAndBatch": ("Map", "ParallelMap"),
        "ParallelMap": ("ParallelMap", "Map"),
        "Generator": ("from_generator",),
        "FlatMap": ("from_generator", "FlatMap"),
    }.get(name, (name,))
    for stage in stages:
        if stage.name in wanted:
            return stage
    return None
