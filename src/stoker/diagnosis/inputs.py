"""Waiting for the input pipeline: which pipeline, and which of its stages is to blame."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.diagnosis.draft import Draft, most, worth
from stoker.diagnosis.ledger import first_call_ns, graph_input_share
from stoker.probes.input_wait import Pipeline, Stage
from stoker.probes.profiler_trace import slow_stage, stage_name
from stoker.probes.session import Measurements

# A pipeline that keeps the step waiting for less than this share of the run is doing its job.
_MIN_SHARE = 0.01
# A map cheaper than this per element is mostly the price of calling it.
_CHEAP_MAP_NS = 150_000


def find(m: Measurements) -> Iterator[Draft]:
    """One finding for each pipeline that keeps the program waiting, and one for each whose iterators do as they go."""
    for pipeline in m.pipelines:
        yield from _torn_down(m, pipeline)
    in_graph = (
        int((m.totals["graph"] - first_call_ns(m)) * graph_input_share(m)) if m.device_kind == "CPU" else 0
    )
    fed_in_graph = [p for p in m.pipelines if not p.elements and _users_stages(p)]
    for pipeline in m.pipelines:
        wait = pipeline.wait_ns
        if fed_in_graph and pipeline is max(fed_in_graph, key=lambda p: p.iterators):
            # The windows do not say which iterator a graph waited for: it is the one handed to it.
            wait += in_graph
        if wait >= m.wall_ns * _MIN_SHARE and _users_stages(pipeline):
            yield _blame(m, pipeline, wait)


def _torn_down(m: Measurements, pipeline: Pipeline) -> Iterator[Draft]:
    """`iterator-teardown`: one iterator must go in any case, the others need not have been."""
    site = most(pipeline.sites)
    if site is None or pipeline.teardowns < 2:
        return
    lost = pipeline.teardown_ns * (pipeline.teardowns - 1) // pipeline.teardowns
    if worth(m, lost):
        yield Draft("iterator-teardown", site, pipeline.teardowns, pipeline.teardown_ns, lost)


def _users_stages(pipeline: Pipeline) -> list[Stage]:
    return [stage for stage in pipeline.stages if stage.site is not None]


def _blame(m: Measurements, pipeline: Pipeline, wait: int) -> Draft:
    stages = _users_stages(pipeline)
    slow = slow_stage(m.windows.stages)
    culprit = _stage_for(stages, slow) if slow else None
    prefetched = any("::Prefetch" in path for path in m.windows.stages) or stages[0].name == "Prefetch"
    detail: dict[str, object] = {
        "pipeline": [stage.name for stage in reversed(stages)],
        "ran_as": max(m.windows.stages, key=len, default=""),
        "slow_stage": stage_name(slow) if slow else None,
        "elements": pipeline.elements,
    }
    kind, stage, remedy = "input-starved", culprit or stages[0], None
    python = [s for s in stages if s.python]
    if python and (
        culprit is None or culprit.python or culprit is stages[-1] or slow_stage_runs_python(slow)
    ):
        kind, stage = "python-input-pipeline", python[0]
    elif culprit is not None and culprit.name == "Map" and not culprit.parallel:
        kind = _map_kind(m, stages, culprit, slow)
    elif not prefetched and (culprit is None or not culprit.parallel):
        kind, stage = "missing-prefetch", stages[0]
    elif slow:
        remedy = (
            f"The {stage_name(slow)} stage is the slow one: parallelise or vectorise it, or cache its result."
        )
    site = stage.site or most(pipeline.sites)
    if site is None:
        raise AssertionError("a stage of the user's has a site")
    count = pipeline.elements or m.steps
    return Draft(kind, site, count, wait, wait, wait_ns=wait, remedy=remedy, detail=detail)


def slow_stage_runs_python(path: str | None) -> bool:
    """Whether the slow stage is the one TensorFlow builds for from_generator."""
    return path is not None and "Generator" in path


def _map_kind(m: Measurements, stages: list[Stage], culprit: Stage, slow: str | None) -> str:
    """A cheap map below a batch is called too often; any other serial map is just serial."""
    batched_after = any(stage.name in ("Batch", "ParallelBatch") for stage in stages[: stages.index(culprit)])
    time = m.windows.stages.get(slow or "")
    per_element = time.self_ns / time.calls if time and time.calls else 0
    if stage_name(slow or "") == "MapAndBatch":
        return "map-without-parallel-calls"
    return (
        "map-before-batch" if batched_after and per_element < _CHEAP_MAP_NS else "map-without-parallel-calls"
    )


def _stage_for(stages: list[Stage], path: str) -> Stage | None:
    """The user's stage behind a path such as `Iterator::Root::Prefetch::MapAndBatch::Range`.

    TensorFlow rewrites pipelines before it runs them: it fuses map and batch, makes pure maps parallel, adds a
    prefetch. The last stage of that name, counted from the source, is the one.
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
