"""All experiments of a run, after the program has ended: which are worthwhile, how long they take, their results."""

from __future__ import annotations

import dataclasses
import gc
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from types import FrameType
from typing import NamedTuple

from stoker.doctor.experiments.checking import functions_registered, variables_put_back
from stoker.doctor.experiments.marking import PartOfStep, part_of
from stoker.doctor.experiments.rebuilding import CannotRebuildStep, add_hidden_reads
from stoker.doctor.experiments.recorded_step import RecordedStep
from stoker.doctor.experiments.timing import LEAST_ROUNDS, ExperimentBudget, time_in_turn
from stoker.doctor.experiments.trials import ALWAYS_WORTH_IT, BOUNDING, TRIALS, WHOLE_FUNCTIONS, best_step
from stoker.doctor.stall import find_stall
from stoker.errors import describe_error
from stoker.records import ExperimentRow, Finding, Record
from stoker.signals import handle_signals

# The share of the run's time that experiments may take unless the user says otherwise, with a minimum and a maximum.
_SHARE = 0.1
_LEAST_S, _MOST_S = 2.0, 20.0
# A loss below this share of the run is too small for an experiment.
_NEGLIGIBLE = 0.02
_STOPPING = (signal.SIGINT, signal.SIGTERM)


@dataclasses.dataclass(frozen=True)
class ExperimentTerms:
    """The terms on which experiments run."""

    # How long the experiments may take at most; None for the default time of such a run.
    seconds: float | None = None
    # Tells the user that experiments run, and for how long at most; None for silence.
    say: Callable[[float], None] | None = None
    # Whether the program continues afterwards, so that whatever experiments change must be restored.
    goes_on: bool = False


def run_experiments(
    record: Record, steps: Sequence[RecordedStep], terms: ExperimentTerms
) -> list[ExperimentRow]:
    """Time the repairs of a run's findings, and return the results."""
    chosen = list_worth_timing(record)
    if not chosen or not steps:
        return []
    budget = ExperimentBudget(terms.seconds or min(_MOST_S, max(_LEAST_S, _SHARE * record.wall_s)))
    if terms.say is not None:
        terms.say(budget.left_s)
    for step in steps:
        step.goes_on = terms.goes_on
    with _skip_on_signals(budget, terms), _program_left_out_of_collections():
        rows: list[ExperimentRow] = []
        replaced: list[frozenset[int]] = []
        timed: dict[tuple[str, str, str], tuple[ExperimentRow, frozenset[int]]] = {}
        for number, (finding, experiment) in enumerate(chosen):
            alike = (experiment, finding.file, finding.function)
            if experiment in WHOLE_FUNCTIONS and alike in timed and not finding.detail.get("same_array"):
                row, places = timed[alike]
                row = dataclasses.replace(row, line=finding.line)
            else:
                part = ExperimentBudget(budget.left_s * _share_of_time(chosen[number:]), budget)
                row, places = timed[alike] = _run_one(finding, experiment, steps, part)
            rows.append(row)
            replaced.append(places)
            gc.collect()
        return _with_containers(rows, replaced)


@contextmanager
def _program_left_out_of_collections() -> Iterator[None]:
    """Leave all objects that exist out of garbage collections, of which each would take half a second.

    A program that has frozen objects itself keeps them as they are.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _share_of_time(waiting: Sequence[tuple[Finding, str]]) -> float:
    """Return the first experiment's share of the remaining time: the more a finding costs, the larger.

    Experiments that only bound a price take the time that the others leave.
    """
    costs = [finding.lost_s or 0.0 for finding, name in waiting if name not in BOUNDING]
    total = sum(costs)
    return costs[0] / total if total > 0 and waiting[0][1] not in BOUNDING else 1.0 / max(1, len(costs))


def _with_containers(rows: list[ExperimentRow], replaced: Sequence[frozenset[int]]) -> list[ExperimentRow]:
    """Return each row with the names of the rows that replace the same ops and more."""
    return [
        dataclasses.replace(
            row,
            within=[
                f"{other.kind}:{other.line}"
                for other, others in zip(rows, replaced, strict=True)
                if places
                and (places < others or (places == others and other is rows[replaced.index(places)]))
                if other is not row
            ],
        )
        for row, places in zip(rows, replaced, strict=True)
    ]


def list_worth_timing(record: Record) -> list[tuple[Finding, str]]:
    """Return findings with a cost and a repair that can be timed, costliest first; those only bounded come last."""
    phase = record.tables.stepping_phase
    if phase is None or phase.asynchronous:
        return []
    found = []
    for finding in sorted(record.findings, key=lambda f: -(f.lost_s or 0.0)):
        stall = find_stall(finding.kind)
        name = stall.repair.experiment_of(finding) if stall is not None and stall.repair is not None else ""
        least = 0.0 if name in ALWAYS_WORTH_IT else _NEGLIGIBLE * phase.seconds
        if name in TRIALS and (finding.lost_s or 0.0) >= least:
            found.append((finding, name))
    return sorted(found, key=lambda pair: pair[1] in BOUNDING)


def _run_one(
    finding: Finding, experiment: str, steps: Sequence[RecordedStep], budget: ExperimentBudget
) -> tuple[ExperimentRow, frozenset[int]]:
    """Run one experiment; return its row, and the ops that it replaces. A failure becomes a message in the row."""
    row = ExperimentRow(kind=finding.kind, file=finding.file, line=finding.line, function=finding.function)
    try:
        timed = _time(finding, experiment, steps, budget)
    except CannotRebuildStep as error:
        return dataclasses.replace(row, failed=str(error)), frozenset()
    except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
        return dataclasses.replace(row, failed=describe_error(error)[:200]), frozenset()
    if timed is None or len(timed.repaired_s) < LEAST_ROUNDS:
        return dataclasses.replace(row, failed="there was no time for it"), frozenset()
    row = dataclasses.replace(row, was_s=timed.was_s, repaired_s=timed.repaired_s, covers=timed.covers)
    if timed.part is not None:
        step_s, own_s = timed.part
        row = dataclasses.replace(row, step_s=step_s, own_s=own_s, mean_s=fmean(step_s))
    return row, timed.places


class _TimedRepair(NamedTuple):
    """Seconds of a step as it was and as repaired, one value a round; and which part of the step that is."""

    was_s: list[float]
    repaired_s: list[float]
    covers: float
    # What the repair replaces in the steps of the run; None if no steps show that.
    part: PartOfStep | None
    places: frozenset[int]


def _time(
    finding: Finding, experiment: str, steps: Sequence[RecordedStep], budget: ExperimentBudget
) -> _TimedRepair | None:
    """Time one repair; return None if no time is left."""
    if not budget.left_s:
        return None
    step = best_step(steps, finding)
    if step is None:
        raise CannotRebuildStep("no step was recorded")
    import tensorflow as tf

    # The program may have a graph or a tape open; the experiments must not run in either.
    with tf.init_scope(), functions_registered(step), variables_put_back(step):
        add_hidden_reads(step)
        trial = TRIALS[experiment](step, finding)
        *was, repaired = time_in_turn(trial.ways, budget)
    return _TimedRepair(
        [seconds / trial.steps for rounds in was for seconds in rounds],
        [seconds / trial.steps for seconds in repaired],
        round(trial.covers, 4),
        part_of(step.marks, step.count, trial.replaces),
        trial.replaces.places | trial.replaces.gaps,
    )


@contextmanager
def _skip_on_signals(budget: ExperimentBudget, terms: ExperimentTerms) -> Iterator[None]:
    """Skip the rest of the experiments on Ctrl-C, or on a request to end.

    A program that has ended is not affected further. A program that continues gets the signal afterwards, except for a
    Ctrl-C if the user was told that it skips the experiments.
    """
    received: set[int] = set()

    def skip(number: int, frame: FrameType | None) -> None:
        received.add(number)
        budget.skip()

    with handle_signals(_STOPPING, skip):
        yield
    if terms.say is not None:
        received.discard(signal.SIGINT)
    for number in received if terms.goes_on else ():
        signal.raise_signal(number)
