"""What only a worker of a job can do wrong: exchange too often, read what others read as well."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.diagnosis.draft import MIN_REPEATS, Draft, most
from stoker.doctor.diagnosis.ledger import accounts
from stoker.doctor.probes.input_wait import Pipeline
from stoker.doctor.probes.session import Measurements

# One exchange a step is enough for all that is small; larger states go in packs of about 4 MiB.
_FEW = 3
_SMALL_BYTES = 1 << 20
# Stages that leave a worker only its part of the data.
_SHARDING = ("Shard", "AutoShard", "Rebatch", "LegacyRebatch")


def find(m: Measurements) -> Iterator[Draft]:
    """`many-small-collectives`, `unsharded-input`."""
    if m.workers < 2:
        return
    yield from _many_small(m)
    for pipeline in m.pipelines:
        yield from _unsharded(m, pipeline)


def _many_small(m: Measurements) -> Iterator[Draft]:
    for function in m.traced:
        count, size = function.collectives, function.collective_bytes
        if count < _FEW or not function.updates_variables or size > count * _SMALL_BYTES:
            continue
        site = function.definition if function.definition in m.users_functions else most(function.sites)
        if site is None:
            continue
        spent = int(accounts(m)["communication"] * 1e9)
        # One of them would be left.
        lost = spent * (count - 1) // count
        detail = {"collectives": count, "function": function.name}
        yield Draft("many-small-collectives", site, m.steps, spent, lost, bytes=size, detail=detail)


def _unsharded(m: Measurements, pipeline: Pipeline) -> Iterator[Draft]:
    names = [stage.name for stage in pipeline.stages]
    site = next((stage.site for stage in reversed(pipeline.stages) if stage.site), None)
    if site is None or pipeline.elements < MIN_REPEATS or any(name in _SHARDING for name in names):
        return
    # Of what it waits for, its own part would be left.
    lost = pipeline.wait_ns * (m.workers - 1) // m.workers
    detail = {"pipeline": names[::-1]}
    yield Draft("unsharded-input", site, pipeline.elements, pipeline.wait_ns, lost, detail=detail)
