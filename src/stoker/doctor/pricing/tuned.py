"""Price a finding about an input from the tuner's measurement: replay the run with the tuned input."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from stoker.doctor.pricing import program as programs
from stoker.doctor.pricing.claims import has_repair, repair_of
from stoker.doctor.pricing.prices import MODELLED, price_record
from stoker.doctor.replay.program import Program
from stoker.doctor.replay.simulation import Draw, seconds_per_step
from stoker.doctor.stalls.shared.input_repair import AHEAD, InputRepair, with_source
from stoker.errors import RecordError
from stoker.records import Finding, Record, RepairedLine, VerifiedRow
from stoker.tracking.store import record_files

_BY = "stoker tune"
# The number of latest runs that are searched for one that used the pipeline.
_MOST_RUNS = 20


def price_tuned_input(path: Path, function: str, gain: float) -> tuple[Record, list[Finding]] | None:
    """Price the findings about a function's pipeline in the latest run that has any, and save its record.

    The tuner made the pipeline `gain` times as fast. Return the record and these findings; None if no run has any.

    Raises:
        OSError: the record cannot be written.
    """
    for run_id in reversed(record_files.ids()[-_MOST_RUNS:]):
        place = record_files.path_of(run_id)
        try:
            record = record_files.read(place)
        except RecordError:
            # The record is damaged or from a newer Stoker; `stoker runs` reports this.
            continue
        found = [finding for finding in record.findings if _is_about(finding, path, function)]
        program = programs.of(record) if found else None
        if program is not None and program.source is not None and program.source.seconds > 0:
            made = with_tuned_input(record, program, found, gain)
            record_files.write(made, place)
            return made, [finding for finding in made.findings if _is_about(finding, path, function)]
    return None


def with_tuned_input(record: Record, program: Program, found: list[Finding], gain: float) -> Record:
    """Return the record with the price of these findings: their input is `gain` times as fast, and made ahead."""
    source = program.source
    assert source is not None
    tuned = with_source(program, source.seconds / max(1.0, gain), ahead=AHEAD)
    speedup = seconds_per_step(program, Draw()) / seconds_per_step(tuned, Draw())
    lines = [RepairedLine(kind=f.kind, file=f.file, line=f.line, function=f.function) for f in found]
    row = VerifiedRow(lines=lines, speedup=round(max(1.0, speedup), 3), by=_BY, basis=MODELLED)
    tables = dataclasses.replace(record.tables, verified=[*record.tables.verified, row])
    return price_record(dataclasses.replace(record, tables=tables))


def _is_about(finding: Finding, path: Path, function: str) -> bool:
    about = finding.function == function and os.path.abspath(finding.file) == str(path.resolve())
    return about and has_repair(finding.kind) and isinstance(repair_of(finding.kind), InputRepair)
