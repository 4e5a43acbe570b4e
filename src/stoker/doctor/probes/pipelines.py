"""tf.data pipelines: as the program wrote them, as TensorFlow ran them, and which of their stages is the slow one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey

# The name of a span in which a new iterator returned its first element, which could not have been ready.
FIRST_ELEMENT = "first element"
# A generator that takes more than this share of a pipeline's work is the slow stage.
_MUCH_PYTHON = 0.25
# Buffers: the wait for a missing element shows here, but the slow stage lies below.
BUFFERS = frozenset({"Prefetch", "Root", "Model"})


@dataclass
class UserStage:
    """One transformation of a pipeline, as the user wrote it, and its line."""

    name: str
    site: SiteKey | None
    # Whether it runs Python: from_generator, py_function, numpy_function.
    python: bool = False
    # Whether it has num_parallel_calls, or overlaps by nature.
    parallel: bool = False


@dataclass
class Pipeline:
    """A dataset that was iterated: its stages from the last transformation down to the source."""

    stages: list[UserStage]
    iterators: int = 0
    elements: int = 0
    wait_ns: int = 0
    # The wait for the first element of each iterator, which nothing could overlap.
    first_ns: int = 0
    # Iterators that the program made itself and that were torn down. No step waits for that, but the program does.
    teardowns: int = 0
    teardown_ns: int = 0
    # The pipeline as tf.data ran it, with what it rewrote and injected: name, elements and nanoseconds of each stage
    # from the root down. Empty if tf.data does not report them.
    ran: list[tuple[str, int, int]] = field(default_factory=list)
    sites: dict[SiteKey, int] = field(default_factory=dict)


@dataclass
class StageTime:
    """One stage of a tf.data pipeline, by its path from the root."""

    calls: int = 0
    self_ns: int = 0


def does_make_ahead(pipeline: Pipeline) -> bool:
    """Return whether elements are made before they are requested, in the pipeline as it ran or as it was written."""
    names = [name for name, _, _ in pipeline.ran] or [stage.name for stage in pipeline.stages]
    return any(name.startswith(("Prefetch", "Parallel", "MapAndBatch")) for name in names)


def find_slow_stage(stages: dict[str, StageTime]) -> str | None:
    """Return the path of the stage on which the pipeline spends most of its own time, leaving out buffers."""
    own: defaultdict[str, int] = defaultdict(int)
    for path, stage in stages.items():
        if stage_name(path) not in BUFFERS:
            own[path] += stage.self_ns
    return slowest(own)


def slowest(own: Mapping[str, float]) -> str | None:
    """Return the slow one of these stages, given their own times: a generator if it takes a good part of the total.

    The stages behind a generator handle its rows one by one, too.
    """
    much = _MUCH_PYTHON * sum(own.values())
    python = [path for path, time in own.items() if is_generator(path) and time > much]
    return max(python or own, key=lambda path: own[path], default=None)


def is_generator(path: str) -> bool:
    """Return whether a stage is the one that TensorFlow builds for from_generator."""
    return "Generator" in path


def is_cached(path: str) -> bool:
    """Return whether a cache keeps the results of the stage at this path, so that only the first pass waits for it."""
    return any("Cache" in above for above in path.split("::")[:-1])


def stage_name(path: str) -> str:
    """Return the short name of a stage: `Iterator::Root::Prefetch::BatchV2` is `Batch`."""
    return path.rsplit("::", 1)[-1].removesuffix("V2").removesuffix("V3")
