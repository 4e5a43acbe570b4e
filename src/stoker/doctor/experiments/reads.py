"""Reads in the loop: whatever a line computes only to be read goes away with the read."""

from __future__ import annotations

from stoker.doctor.experiments.marking import OwnOps
from stoker.doctor.experiments.rebuilding import CannotRebuildStep, is_input
from stoker.doctor.experiments.recorded_step import RecordedOp, RecordedRead, RecordedStep
from stoker.doctor.experiments.timing import Way
from stoker.doctor.experiments.trial import RepairTrial, is_of_line
from stoker.records import Finding


def without_reads(step: RecordedStep, finding: Finding) -> RepairTrial:
    """Return the trial without those ops of the finding's line whose results are read there and used nowhere else."""
    ops = ops_for_reads(step, finding)
    if not ops:
        raise CannotRebuildStep("the line computes nothing but what it reads")
    return RepairTrial(None, Way(lambda: None), replaces=OwnOps(frozenset(op.place for op in ops)))


def ops_for_reads(step: RecordedStep, finding: Finding) -> list[RecordedOp]:
    """Return the ops of the finding's line that only serve its reads."""
    read = {e.value for e in step.events if isinstance(e, RecordedRead) and is_of_line(e.stack, finding)}
    needed: set[int] = set(step.held)
    found: list[RecordedOp] = []
    # From the last op to the first: whatever other ops need stays.
    for op in reversed(step.ops()):
        outputs = set(op.outputs)
        serves = is_of_line(op.stack, finding) and op.place >= 0 and not is_input(op)
        if serves and outputs & read and not outputs & needed:
            found.append(op)
            read.update(op.inputs)
        else:
            needed.update(op.inputs)
    return found[::-1]
