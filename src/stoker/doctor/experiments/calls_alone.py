"""A starved step: its compiled calls on a batch that is ready, while nothing else makes the next batch."""

from __future__ import annotations

from functools import partial

from stoker.doctor.experiments.checking import set_variables
from stoker.doctor.experiments.rebuilding import CannotRebuildStep, check_repeatable, replay
from stoker.doctor.experiments.recorded_step import RecordedStep
from stoker.doctor.experiments.timing import Way
from stoker.doctor.experiments.trial import RepairTrial
from stoker.records import Finding


def calls_alone(step: RecordedStep, finding: Finding) -> RepairTrial:
    """Return the trial of all compiled calls of the step, as the program made them. Nothing is rebuilt or checked."""
    calls = [op for op in step.ops() if op.name in step.functions]
    if not calls:
        raise CannotRebuildStep("the recorded step calls no compiled function")
    for call in calls:
        check_repeatable(call, step)
    return RepairTrial(None, Way(replay(step, calls), partial(set_variables, step.before)))
