"""All experiments of a run, after its program has ended: which are worth it, in what time, and what came out."""

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
from stoker.records import ExperimentRow, Finding, Record
from stoker.signals import handle_signals

# Of the run's time, what experiments may take unless the user says otherwise; at least, and at most.
_SHARE = 0.1
_LEAST_S, _MOST_S = 2.0, 20.0
# Of the run, a loss so small that its price is not worth an experiment.
_NEGLIGIBLE = 0.02
_STOPPING = (signal.SIGINT, signal.SIGTERM)


@dataclasses.dataclass(frozen=True)
class ExperimentTerms:
    """On what terms experiments run."""

    # At most so long; None: as long as is usual for such a run.
    seconds: float | None = None
    # Says that they run, and how long at most; None: nobody does.
    say: Callable[[float], None] | None = None
    # Whether the program goes on afterwards, so that what they change has to be put back.
    goes_on: bool = False


def run_experiments(
    record: Record, steps: Sequence[RecordedStep], terms: ExperimentTerms
) -> list[ExperimentRow]:
    """Time the repairs of a run's findings."""
    chosen = list_worth_timing(record)
    if not chosen or not steps:
        return []
    budget = ExperimentBudget(terms.seconds or min(_MOST_S, max(_LEAST_S, _SHARE * record.wall_s)))
    if terms.say is not None:
        terms.say(budget.left_s)
    for step in steps:
        step.goes_on = terms.goes_on
    with _skip_on_signals(budget, terms):
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


def _share_of_time(waiting: Sequence[tuple[Finding, str]]) -> float:
    """What the first of these experiments may take of the time that is left: the more a finding costs, the more.

    Those that only bound a price take what the others leave.
    """
    costs = [finding.lost_s or 0.0 for finding, name in waiting if name not in BOUNDING]
    total = sum(costs)
    return costs[0] / total if total > 0 and waiting[0][1] not in BOUNDING else 1.0 / max(1, len(costs))


def _with_containers(rows: list[ExperimentRow], replaced: Sequence[frozenset[int]]) -> list[ExperimentRow]:
    """The rows, each with those that replace the same ops and more."""
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
    """Findings that cost something and whose repair can be timed, costliest first; those only bounded come last."""
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
    """One experiment, and the ops that it replaces. Whatever goes wrong in it is a word in its row."""
    row = ExperimentRow(kind=finding.kind, file=finding.file, line=finding.line, function=finding.function)
    try:
        timed = _time(finding, experiment, steps, budget)
    except CannotRebuildStep as error:
        return dataclasses.replace(row, failed=str(error)), frozenset()
    except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
        why = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return dataclasses.replace(row, failed=why), frozenset()
    if timed is None or len(timed.repaired_s) < LEAST_ROUNDS:
        return dataclasses.replace(row, failed="there was no time for it"), frozenset()
    row = dataclasses.replace(row, was_s=timed.was_s, repaired_s=timed.repaired_s, covers=timed.covers)
    if timed.part is not None:
        step_s, own_s = timed.part
        row = dataclasses.replace(row, step_s=step_s, own_s=own_s, mean_s=fmean(step_s))
    return row, timed.places


class _TimedRepair(NamedTuple):
    """Seconds of a step, a value a round, as it was and as repaired; and what of the step that is."""

    was_s: list[float]
    repaired_s: list[float]
    covers: float
    # What it replaces in the steps of the run; None where no steps tell.
    part: PartOfStep | None
    places: frozenset[int]


def _time(
    finding: Finding, experiment: str, steps: Sequence[RecordedStep], budget: ExperimentBudget
) -> _TimedRepair | None:
    """Time one repair; None if there is no time."""
    if not budget.left_s:
        return None
    step = best_step(steps, finding)
    if step is None:
        raise CannotRebuildStep("no step was recorded")
    import tensorflow as tf

    # Not in a graph or under a tape that the program may have open.
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
    """Ctrl-C, or being told to end, skips the rest.

    A program that has ended ends as it did. One that goes on gets the signal afterwards, but for a Ctrl-C by someone
    who was told what it does.
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
