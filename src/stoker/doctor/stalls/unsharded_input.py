"""Every worker reads the whole dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stoker.doctor.probes.parts.environment import EnvironmentPart
from stoker.doctor.probes.parts.input import InputPart
from stoker.doctor.stall import Stall
from stoker.doctor.stalls.shared.draft import MIN_REPEATS, Draft

if TYPE_CHECKING:
    from stoker.doctor.probes.measurements import Measurements

# Stages that give a worker only its part of the data.
_SHARDING = ("Shard", "AutoShard", "Rebatch", "LegacyRebatch")


class UnshardedInput(Stall):
    """A pipeline without a shard in a job of several workers."""

    slug = "unsharded-input"
    code = "STK603"
    account = "input"
    title = "Every worker reads the whole dataset"
    remedy = (
        "Give each worker its own part: dataset.shard(size, rank) before shuffle, or a stoker.data reader."
    )
    why = "Every worker reads, decodes and trains on the same rows, so together they do the work of one."

    def find(self, m: Measurements) -> Iterator[Draft]:
        """Report pipelines without a stage that divides the data among the workers of a job."""
        workers = m[EnvironmentPart].workers
        if workers < 2:
            return
        for pipeline in m[InputPart].pipelines:
            names = [stage.name for stage in pipeline.stages]
            site = next((stage.site for stage in reversed(pipeline.stages) if stage.site), None)
            if site is None or pipeline.elements < MIN_REPEATS or any(name in _SHARDING for name in names):
                continue
            # With a shard, only a worker's own part of the wait would be left.
            lost = pipeline.wait_ns * (workers - 1) // workers
            yield Draft(site, pipeline.elements, pipeline.wait_ns, lost, detail={"pipeline": names[::-1]})


STALL = UnshardedInput()
