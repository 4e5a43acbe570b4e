"""The record of a run, from its measurements: ledger, findings and the tables behind them."""

from __future__ import annotations

import dataclasses
import platform
from dataclasses import dataclass

from stoker.doctor.attach.sites import shown_path
from stoker.doctor.diagnosis import ledger, timeline
from stoker.doctor.diagnosis.excerpts import excerpts
from stoker.doctor.diagnosis.findings import findings, site_row
from stoker.doctor.probes.measurements import Measurements
from stoker.doctor.probes.pipelines import makes_ahead
from stoker.records import (
    CallbackRow,
    ChangeRow,
    FunctionRow,
    MemoryRow,
    PipelineRow,
    PipelineStage,
    RanStage,
    Record,
    StageRow,
    Tables,
    TallyRow,
    TraceRow,
)
from stoker.redaction import redact, redact_text
from stoker.version import __version__

_MAX_ROWS = 100


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run before it starts."""

    id: str
    program: str
    argv: list[str]
    started: str


def record(facts: RunFacts, m: Measurements, state: str, exit_code: int | None = None) -> Record:
    """The record as of now."""
    found = findings(m)
    return Record(
        id=facts.id,
        program=facts.program,
        argv=facts.argv,
        exit_code=exit_code,
        versions={"stoker": __version__, **m.versions, "python": platform.python_version()},
        device=ledger.device(m),
        wall_s=round(m.wall_ns / 1e9, 6),
        steps=m.steps,
        steps_per_s=_rounded(m.steps_per_s),
        examples_per_s=_rounded(m.examples_per_s),
        accounts={name: round(seconds, 6) for name, seconds in ledger.accounts(m).items()},
        findings=found,
        started=facts.started,
        state=state,
        notes=[redact_text(note) for note in m.notes],
        tables=_tables(m),
        step_times=timeline.step_times(m),
        timeline=timeline.timeline(m),
        memory=[MemoryRow(*point) for point in m.memory],
        sources=excerpts(found, _paths(m)),
        environment=redact(dict(m.environment)),
    )


def _paths(m: Measurements) -> dict[str, str]:
    """From the names findings show to the files they were read from."""
    sites = {site for tallies in m.tallies.values() for site in tallies}
    sites |= {f.definition for f in m.traced if f.definition}
    sites |= {f.definition for f in m.called if f.definition}
    sites |= {callback.site for callback in m.callbacks if callback.site}
    sites |= {frame.site for stack in m.eager_stacks for frame in stack}
    sites |= set(m.predicts) | set(m.fits)
    sites |= {stage.site for p in m.pipelines for stage in p.stages if stage.site}
    return {shown_path(path): path for path in {site[0] for site in sites}}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _tables(m: Measurements) -> Tables:
    return Tables(
        traces=[
            TraceRow(
                **{"function": f.name, **site_row(f.definition)},
                traces=f.traces,
                retraces=f.retraces,
                objects=f.objects,
                seconds=f.ns / 1e9,
                changes=[ChangeRow(**dataclasses.asdict(c)) for c in f.changes[:5]],
            )
            for f in sorted(m.traced, key=lambda f: -f.ns)[:_MAX_ROWS]
        ],
        functions=[
            FunctionRow(
                **{"function": f.name, **site_row(f.definition)},
                calls=f.calls,
                seconds=f.ns / 1e9,
                graph_s=f.graph_ns / 1e9,
                first_calls_s=f.first_call_excess_ns(m.graph_busy_share) / 1e9,
                jit_compile=f.jit_compile,
            )
            for f in sorted(m.called, key=lambda f: -f.ns)[:_MAX_ROWS]
        ],
        callbacks=[
            CallbackRow(
                callback=c.class_name, hook=c.hook, **site_row(c.site), calls=c.calls, seconds=c.ns / 1e9
            )
            for c in sorted(m.callbacks, key=lambda c: -c.ns)[:_MAX_ROWS]
            if c.calls
        ],
        pipelines=[
            PipelineRow(
                stages=[PipelineStage(name=s.name, **site_row(s.site), python=s.python) for s in p.stages],
                elements=p.elements,
                wait_s=p.wait_ns / 1e9,
                first_wait_s=p.first_ns / 1e9,
                ran=[RanStage(name=name, elements=count, seconds=ns / 1e9) for name, count, ns in p.ran],
                ahead=makes_ahead(p),
                iterators=p.iterators,
                teardown_s=p.teardown_ns / 1e9,
            )
            for p in m.pipelines[:_MAX_ROWS]
        ],
        stages=[
            StageRow(path=path, calls=s.calls, self_s=s.self_ns / 1e9)
            for path, s in sorted(m.windows.stages.items(), key=lambda item: -item[1].self_ns)[:_MAX_ROWS]
        ],
        tunings=[dataclasses.replace(row, **site_row(site)) for site, row in m.tunings],
        syncs=_tally_rows(m, "sync"),
        copies=_tally_rows(m, "transfer"),
        checkpoints=_tally_rows(m, "checkpoint"),
        devices=m.device_rows,
        windows=[m.windows.sums()],
        stepping=timeline.stepping(m),
    )


def _tally_rows(m: Measurements, probe: str) -> list[TallyRow]:
    tallies = sorted(m.tallies.get(probe, {}).items(), key=lambda item: -item[1].ns)
    return [
        TallyRow(**site_row(site), count=t.count, seconds=t.ns / 1e9, wait_s=t.wait_ns / 1e9, bytes=t.bytes)
        for site, t in tallies[:_MAX_ROWS]
    ]
