"""Waiting for the input pipeline: which pipeline, and which of its stages is to blame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stoker.doctor.diagnosis.draft import MIN_REPEATS, Draft, most, worth
from stoker.doctor.diagnosis.ledger import first_call_ns, graph_input_share
from stoker.doctor.probes.input_wait import Pipeline, Stage, makes_ahead
from stoker.doctor.probes.profiler_trace import StageTime, is_generator, slow_stage, stage_name
from stoker.doctor.probes.session import Measurements

# A pipeline that keeps the step waiting for less than this share of the run is doing its job.
_MIN_SHARE = 0.01
# A map cheaper than this per element is mostly the price of calling it.
_CHEAP_MAP_NS = 150_000
# Of the time there is for an element, the share in which a pipeline that keeps up makes one.
_AT_EASE = 0.25
_FUNCTION_CALL_NS = 20_000
_WITH_FUNCTION = ("Map", "ParallelMap", "FlatMap", "Filter", "Interleave", "ParallelInterleave")
# Of the run, what taking iterators down must cost to be a finding.
_TORN_DOWN = 0.05
_BATCHES = ("Batch", "ParallelBatch", "PaddedBatch")
# By the stage that is slow, what can be done about it where it stands.
_REMEDIES = (
    (
        ("Shuffle", "ShuffleAndRepeat"),
        "shuffle row numbers (Dataset.range(n).shuffle(n)) and gather whole batches of rows by them, as "
        "stoker.tune(ds) can, or shuffle files and keep the buffer small.",
    ),
    (
        (*_BATCHES, "TensorSlice", "Unbatch"),
        "it handles row by row. Let the source hand out whole batches (gather them by shuffled row numbers, as "
        "stoker.tune(ds) can), or keep the rows on the device, as stoker.fit does.",
    ),
    (
        ("Map", "ParallelMap", "MapAndBatch", "FlatMap"),
        "map whole batches behind batch(), and cache() what is the same in every epoch; stoker.tune(ds) tries both.",
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
    "it; what is drawn anew for every batch may move into the model, where the device computes it."
)


def find(m: Measurements) -> Iterator[Draft]:
    """One finding for each pipeline that keeps the program waiting, and one for each whose iterators do as they go."""
    for pipeline in m.pipelines:
        yield from _torn_down(m, pipeline)
        yield from _shuffled_batches(m, pipeline)
    in_graph = (
        int((m.totals["graph"] - first_call_ns(m)) * graph_input_share(m)) if m.device_kind == "CPU" else 0
    )
    fed_in_graph = [p for p in m.pipelines if not p.elements and _users_stages(p)]
    for pipeline in m.pipelines:
        wait = pipeline.wait_ns
        if fed_in_graph and pipeline is max(fed_in_graph, key=lambda p: p.iterators):
            # The windows do not say which iterator a graph waited for: it is the one handed to it.
            wait += in_graph
        if wait >= m.wall_ns * _MIN_SHARE and _users_stages(pipeline) and not _keeps_up(m, pipeline):
            yield _blame(m, pipeline, wait)


def _keeps_up(m: Measurements, pipeline: Pipeline) -> bool:
    """Whether an element takes far less to make, ahead of its use, than there is time for one.

    Then the step waits for a processor, not for the pipeline: a busy machine, or Python's lock.
    """
    if not pipeline.ran or not pipeline.elements or not makes_ahead(pipeline):
        return False
    elements = max(1, pipeline.ran[0][1])
    making = sum(max(ns, count * _call_ns(name)) for name, count, ns in pipeline.ran) / elements
    return making < _AT_EASE * (m.stepping_ns or m.wall_ns) / pipeline.elements


def _call_ns(stage: str) -> int:
    """What one call of a stage takes at least: tf.data's books leave out the calling of its function."""
    return _FUNCTION_CALL_NS if stage.startswith(_WITH_FUNCTION) else 0


def _torn_down(m: Measurements, pipeline: Pipeline) -> Iterator[Draft]:
    """`iterator-teardown`: one iterator must go in any case, the others need not have been."""
    site = most(pipeline.sites)
    if site is None or pipeline.teardowns < 2:
        return
    lost = pipeline.teardown_ns * (pipeline.teardowns - 1) // pipeline.teardowns
    # A tenth of a second an epoch is usual, and not worth another way of writing the loop where epochs are long.
    if worth(m, lost, share=_TORN_DOWN):
        yield Draft("iterator-teardown", site, pipeline.teardowns, pipeline.teardown_ns, lost)


def _users_stages(pipeline: Pipeline) -> list[Stage]:
    return [stage for stage in pipeline.stages if stage.site is not None]


def _shuffled_batches(m: Measurements, pipeline: Pipeline) -> Iterator[Draft]:
    """`shuffle-after-batch`: whole batches change places, the rows inside them never do."""
    names = [stage.name for stage in pipeline.stages]
    for number, stage in enumerate(pipeline.stages):
        if stage.name == "Shuffle" and stage.site and pipeline.elements >= MIN_REPEATS:
            below = names[number + 1 :]
            if any(name in _BATCHES for name in below) and "Unbatch" not in below:
                detail: dict[str, object] = {"pipeline": names[::-1]}
                yield Draft("shuffle-after-batch", stage.site, pipeline.elements, 0, 0, detail=detail)


def _ran_as(m: Measurements, pipeline: Pipeline) -> dict[str, StageTime]:
    """The stages by path: as the profiler's windows saw them, else by tf.data's own books."""
    if m.windows.stages or not pipeline.ran:
        return m.windows.stages
    stages, path = {}, "Iterator"
    for name, elements, ns in pipeline.ran:
        path = f"{path}::{name}"
        stages[path] = StageTime(elements, ns)
    return stages


def _blame(m: Measurements, pipeline: Pipeline, wait: int) -> Draft:
    stages, ran = _users_stages(pipeline), _ran_as(m, pipeline)
    slow = slow_stage(ran)
    culprit = _stage_for(stages, slow) if slow else None
    prefetched = any("::Prefetch" in path for path in ran) or stages[0].name == "Prefetch"
    detail: dict[str, object] = {
        "pipeline": [stage.name for stage in reversed(stages)],
        "ran_as": max(ran, key=len, default=""),
        "slow_stage": stage_name(slow) if slow else None,
        "elements": pipeline.elements,
    }
    kind, stage, remedy = "input-starved", culprit or stages[0], None
    python = [s for s in stages if s.python]
    if python and (
        culprit is None
        or culprit.python
        or culprit is stages[-1]
        or (slow is not None and is_generator(slow))
    ):
        kind, stage = "python-input-pipeline", python[0]
    elif culprit is not None and culprit.name == "Map" and not culprit.parallel:
        kind = _map_kind(ran, stages, culprit, slow)
    elif not prefetched and (culprit is None or not culprit.parallel):
        kind, stage = "missing-prefetch", stages[0]
    elif slow:
        remedy = stage_remedy(stage_name(slow), [s.name for s in stages])
    site = stage.site or most(pipeline.sites)
    if site is None:
        raise AssertionError("a stage of the user's has a site")
    count = pipeline.elements or m.steps
    return Draft(kind, site, count, wait, wait, wait_ns=wait, remedy=remedy, detail=detail)


def stage_remedy(name: str, stages: Sequence[str] = ()) -> str:
    """What helps where this stage is the slow one of a pipeline whose stages are these, the source's last."""
    helps = "do its work once beforehand, or for a whole batch at a time."
    below = stages[stages.index(name) + 1 :] if name in stages else ()
    if name in _MAPS and any(stage in _BATCHES for stage in below) and "Unbatch" not in below:
        helps = _MAPPED_BATCHES
    else:
        helps = next((remedy for names, remedy in _REMEDIES if name in names), helps)
    return f"The {name} stage is the slow one: {helps}"


def _map_kind(ran: dict[str, StageTime], stages: list[Stage], culprit: Stage, slow: str | None) -> str:
    """A cheap map below a batch is called too often; any other serial map is just serial."""
    batched_after = any(stage.name in ("Batch", "ParallelBatch") for stage in stages[: stages.index(culprit)])
    time = ran.get(slow or "")
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
