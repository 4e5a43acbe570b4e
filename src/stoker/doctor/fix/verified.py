"""Store the speedup that `stoker fix --verify` measured in the first run's record, as the price of the repairs.

This module reads and writes records. It imports no pricing code, since that would load TensorFlow.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from stoker.doctor.check.rule import Problem
from stoker.doctor.fix.plan import FileChange
from stoker.records import Finding, Record, RepairedLine, Repairs, VerifiedRow
from stoker.tracking.store import record_files

_BY = "stoker fix --verify"
# All findings count as repaired even if some are left that cost less than this share.
_NEGLIGIBLE = 0.02


def keep_gain(run_id: str, changes: Sequence[FileChange], speedup: float) -> None:
    """Store the gain of these repairs in the record of the run before them.

    Raises:
        RecordError: the record no longer exists.
        OSError: the record cannot be written.
    """
    path = record_files.path_of(run_id)
    record = record_files.read(path)
    repaired = [finding for finding in record.findings if _is_repaired(finding, record, changes)]
    if repaired:
        record_files.write(with_gain(record, repaired, speedup), path)


def with_gain(record: Record, repaired: Sequence[Finding], speedup: float) -> Record:
    """Return the record with the measured gain of these findings together, in place of their estimated prices."""
    lines = [RepairedLine(kind=f.kind, file=f.file, line=f.line, function=f.function) for f in repaired]
    row = VerifiedRow(lines=lines, speedup=round(speedup, 3), by=_BY)
    tables = replace(record.tables, verified=[*record.tables.verified, row])
    findings = record.findings
    if len(repaired) == 1:
        findings = [_with_price(f, row) if f == repaired[0] else f for f in findings]
    made = replace(record, findings=findings, tables=tables)
    return made if made.what_if is None else replace(made, what_if=_repairs(made.what_if, record, row))


def _with_price(finding: Finding, row: VerifiedRow) -> Finding:
    before = finding.what_if
    return replace(finding, what_if=row.price(None if before is None else before.share))


def _repairs(before: Repairs, record: Record, row: VerifiedRow) -> Repairs:
    """Update the price of all repairs if every finding that counts was repaired, and that of one repaired alone."""
    counting = {
        f.key
        for f in record.findings
        if f.what_if is not None and (f.what_if.share is None or f.what_if.share >= _NEGLIGIBLE)
    }
    every = before.all
    if every is not None and counting and counting <= row.keys:
        every = row.price(every.share)
    alone = next(iter(row.keys)) if len(row.keys) == 1 else None
    order = [
        replace(place, alone=row.speedup, together=max(place.together, row.speedup))
        if place.key == alone
        else place
        for place in before.order
    ]
    return replace(before, all=every, order=order)


def _is_repaired(finding: Finding, record: Record, changes: Sequence[FileChange]) -> bool:
    """Return whether the fixed problems include this finding of the run."""
    path = os.path.abspath(finding.file)
    fixed = [
        problem
        for change in changes
        if os.path.abspath(change.path) == path
        for problem in change.fixed
        if problem.kind == finding.kind
    ]
    alike = [f for f in record.findings if (f.kind, f.file) == (finding.kind, finding.file)]
    return any(_is_at(problem, finding) for problem in fixed) or (len(fixed) == len(alike) == 1)


def _is_at(problem: Problem, finding: Finding) -> bool:
    return problem.line <= finding.line <= max(problem.line, problem.end_line)
