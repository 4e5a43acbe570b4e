"""All experiments of a run, after its program has ended: which are worth it, in what time, and what came out."""

from __future__ import annotations

import dataclasses
import gc
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

from stoker.doctor.experiments.checking import variables_put_back
from stoker.doctor.experiments.marking import PartOfStep, part_of
from stoker.doctor.experiments.rebuilding import CannotRebuildStep, add_hidden_reads
from stoker.doctor.experiments.recording import RecordedStep
from stoker.doctor.experiments.timing import LEAST_ROUNDS, Budget, time_in_turn
from stoker.doctor.experiments.trials import BOUNDING, TRIALS, best_step
from stoker.doctor.stall import find_stall
from stoker.records import ExperimentRow, Finding, Record
from stoker.tf_internals import recorded_ops

# Of the run's time, what experiments may take unless the user says otherwise; at least, and at most.
_SHARE = 0.1
_LEAST_S, _MOST_S = 2.0, 20.0
# Of the run, a loss so small that its price is not worth an experiment.
_NEGLIGIBLE = 0.02
_STOPPING = (signal.SIGINT, signal.SIGTERM)


def run_experiments(
    record: Record, steps: Sequence[RecordedStep], seconds: float | None, say: Callable[[str], None]
) -> list[ExperimentRow]:
    """Time the repairs of a run's findings, for `seconds` at most, or as long as is usual for such a run."""
    chosen = _worth_timing(record)
    if not chosen or not steps:
        return []
    budget = Budget(seconds or min(_MOST_S, max(_LEAST_S, _SHARE * record.wall_s)))
    say(f"timing the repairs for up to {budget.left_s:.0f} s (Ctrl-C skips the rest)")
    with _signals_that_skip(budget):
        rows = []
        for number, (finding, experiment) in enumerate(chosen):
            # Those that only bound a price take what is left.
            sharing = sum(name not in BOUNDING for _, name in chosen[number:])
            rows.append(_run_one(finding, experiment, steps, Budget(budget.left_s / max(1, sharing), budget)))
            gc.collect()
        return rows


def _worth_timing(record: Record) -> list[tuple[Finding, str]]:
    """Findings that cost something and whose repair can be timed, costliest first; those only bounded come last."""
    phase = record.tables.stepping_phase
    if phase is None or phase.asynchronous:
        return []
    found = []
    for finding in sorted(record.findings, key=lambda f: -(f.lost_s or 0.0)):
        stall = find_stall(finding.kind)
        name = stall.repair.experiment_of(finding) if stall is not None and stall.repair is not None else ""
        if name in TRIALS and (finding.lost_s or 0.0) >= _NEGLIGIBLE * phase.seconds:
            found.append((finding, name))
    return sorted(found, key=lambda pair: pair[1] in BOUNDING)


def _run_one(
    finding: Finding, experiment: str, steps: Sequence[RecordedStep], budget: Budget
) -> ExperimentRow:
    """One experiment. Whatever goes wrong in it is a word in its row."""
    row = ExperimentRow(kind=finding.kind, file=finding.file, line=finding.line, function=finding.function)
    try:
        timed = _time(finding, experiment, steps, budget)
    except CannotRebuildStep as error:
        return dataclasses.replace(row, failed=str(error))
    except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
        return dataclasses.replace(row, failed=f"{type(error).__name__}: {error}".splitlines()[0][:200])
    if timed is None or len(timed.repaired_s) < LEAST_ROUNDS:
        return dataclasses.replace(row, failed="there was no time for it")
    row = dataclasses.replace(row, was_s=timed.was_s, repaired_s=timed.repaired_s, covers=timed.covers)
    if timed.part is not None:
        step_s, own_s, mean_s = timed.part
        row = dataclasses.replace(row, step_s=step_s, own_s=own_s, mean_s=mean_s)
    return row


class _TimedRepair(NamedTuple):
    """Seconds of a step, a value a round, as it was and as repaired; and what of the step that is."""

    was_s: list[float]
    repaired_s: list[float]
    covers: float
    # What it replaces in the steps of the run; None where no steps tell.
    part: PartOfStep | None


def _time(
    finding: Finding, experiment: str, steps: Sequence[RecordedStep], budget: Budget
) -> _TimedRepair | None:
    """Time one repair; None if there is no time."""
    if not budget.left_s:
        return None
    step = best_step(steps, finding)
    if step is None:
        raise CannotRebuildStep("no step was recorded")
    for definition in step.functions.values():
        recorded_ops.register_function(definition)
    add_hidden_reads(step)
    with variables_put_back(step):
        trial = TRIALS[experiment](step, finding)
        *was, repaired = time_in_turn(trial.ways, budget)
    return _TimedRepair(
        [seconds / trial.steps for rounds in was for seconds in rounds],
        [seconds / trial.steps for seconds in repaired],
        round(trial.covers, 4),
        part_of(step.marks, step.count, trial.replaces),
    )


@contextmanager
def _signals_that_skip(budget: Budget) -> Iterator[None]:
    """Ctrl-C, or being told to end, skips the rest: the program has already ended, and as it did."""

    def skip(number: int, frame: FrameType | None) -> None:
        budget.skip()

    before = {number: signal.signal(number, skip) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
