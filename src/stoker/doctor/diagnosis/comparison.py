"""Comparing two sides of one or more runs: which is faster, by how much, and whether noise allows a verdict.

comparison = compare([before], [after])
comparison.verdict    # "faster", "slower", "no difference that can be told from noise", or "failed"
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from stoker.doctor.diagnosis.noise import (
    ASSUMED_RUN_NOISE,
    mean_error,
    measure_between_runs,
    runs_needed,
    t_quantile,
)
from stoker.doctor.diagnosis.other_work import is_busy, measure_other_work
from stoker.records import Finding, Record

FASTER, SLOWER, UNDECIDED = "faster", "slower", "no difference that can be told from noise"
# A run that crashed did not do the same work: its speed says nothing.
FAILED = "failed"
# The exit code after Ctrl-C, for a shell and for `subprocess`: the steps until then ran at the program's usual speed.
_INTERRUPTED = (130, -2)
# The smallest difference for which Stoker says how many runs it takes to see it.
_WORTH_SEEING = 0.02
# How much a run's speed varies with other programs' share of the processors.
_NOISE_OF_OTHER_WORK = 0.25


@dataclass(frozen=True)
class Comparison:
    """B compared with A. Changes are shares of A's speed: 0.25 is a quarter faster, -0.2 a fifth slower."""

    measure: str
    speed_a: float
    speed_b: float
    change: float
    low: float
    high: float
    verdict: str
    # The noise of one run, as a share: within the run, and between runs.
    noise: float
    # A difference, and how many runs per side it takes to see it; None for more than a thousand.
    visible: float
    runs_needed: int | None
    notes: tuple[str, ...]
    # How many runs A and B have.
    runs: tuple[int, int]
    # The runs of A and of B that ended with an error.
    failed: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def is_slower_than(self, limit: float) -> bool:
        """Return whether B is certainly slower by more than this share: the whole interval says so."""
        return self.high < -limit

    def may_be_slower_than(self, limit: float) -> bool:
        """Return whether B looks slower by more than this share, though part of the interval says otherwise."""
        return self.change < -limit <= self.high

    def runs_to_judge(self, limit: float) -> int | None:
        """Return how many runs per side show that B is slower by more than this share, if it is as slow as it looks."""
        return runs_needed(self.noise, math.log1p(-limit) - math.log1p(self.change))


@dataclass(frozen=True)
class Changes:
    """The findings of A alone, of B alone, and of both."""

    gone: list[Finding]
    new: list[Finding]
    stayed: list[tuple[Finding, Finding]]


def compare(a: Sequence[Record], b: Sequence[Record], noise: float = ASSUMED_RUN_NOISE) -> Comparison:
    """Compare two sides; `noise` is the assumed spread between runs, until several runs show the real one.

    Raises:
        ValueError: a run has no speed to compare.
    """
    measure, speed, notes = _measure(a, b)
    logs = [[math.log(speed(record)) for record in side] for side in (a, b)]
    busy = measure_other_work([*a, *b])
    if is_busy(busy):
        notes.append(
            f"the machine was up to {busy:.0%} busy with other work, so the speed of the run says little"
        )
    spread, freedom = measure_between_runs(logs, noise + _NOISE_OF_OTHER_WORK * busy)
    inside, unknown = _measure_inner_noise([*a, *b])
    if unknown:
        notes.append(f"{unknown} of the runs kept no step times: their noise is assumed")
    one_run = math.hypot(spread, inside) if len(a) == len(b) == 1 else max(spread, inside)
    means = [sum(values) / len(values) for values in logs]
    change = means[1] - means[0]
    margin = t_quantile(freedom) * one_run * math.sqrt(1 / len(a) + 1 / len(b))
    visible = max(abs(change), _WORTH_SEEING)
    failed = (_list_failed(a), _list_failed(b))
    verdict = FASTER if change > margin else SLOWER if change < -margin else UNDECIDED
    return Comparison(
        measure=measure,
        speed_a=math.exp(means[0]),
        speed_b=math.exp(means[1]),
        change=math.expm1(change),
        low=math.expm1(change - margin),
        high=math.expm1(change + margin),
        verdict=FAILED if any(failed) else verdict,
        noise=one_run,
        visible=math.expm1(visible),
        runs_needed=runs_needed(one_run, visible),
        notes=tuple(notes + _warnings(a, b)),
        runs=(len(a), len(b)),
        failed=failed,
    )


def _list_failed(side: Sequence[Record]) -> tuple[str, ...]:
    """Return the runs that ended with an error, with their exit codes."""
    return tuple(
        f"{one.id} (exit code {one.exit_code})"
        for one in side
        if one.exit_code and one.exit_code not in _INTERRUPTED
    )


def _measure(a: Sequence[Record], b: Sequence[Record]) -> tuple[str, Callable[[Record], float], list[str]]:
    """Choose what to compare: steps; examples if the batch size changed; whole runs if there are no steps."""
    runs = [*a, *b]
    for record in runs:
        if not record.wall_s > 0:
            raise ValueError(f"run {record.id} has no recorded time")
    stepping = [record.steps_per_s for record in runs]
    if not all(rate is not None and rate > 0 for rate in stepping):
        return (
            "runs a second",
            lambda record: 1 / record.wall_s,
            ["not all runs have steps: wall times are compared"],
        )
    sizes = [(record.examples_per_s or 0) / (record.steps_per_s or 1) for record in runs]
    if min(sizes) > 0 and max(sizes) > 1.05 * min(sizes):
        words = f"batches differ ({min(sizes):.0f} to {max(sizes):.0f} examples): examples are compared, not steps"
        return "examples a second", lambda record: record.examples_per_s or 0.0, [words]
    return "steps a second", lambda record: record.steps_per_s or 0.0, []


def _measure_inner_noise(runs: Sequence[Record]) -> tuple[float, int]:
    """Return the noise inside one run (root mean square over the runs), and how many runs have no step times."""
    errors = [mean_error(record.step_times) for record in runs]
    known = [error for error in errors if error is not None]
    square = sum(error**2 for error in known) / len(known) if known else 0.0
    return math.sqrt(square), len(errors) - len(known)


def _warnings(a: Sequence[Record], b: Sequence[Record]) -> list[str]:
    found = []
    # The same program may be in another directory: a copy of the repository from before a change.
    names = [sorted({PurePath(record.program).name for record in side}) for side in (a, b)]
    if names[0] != names[1]:
        found.append(
            f"the programs differ ({', '.join(names[0])} and {', '.join(names[1])}): "
            "their speeds compare only if both do the same work"
        )
    for what, values in (
        ("device", [{record.device.name for record in side} for side in (a, b)]),
        ("TensorFlow", [{record.versions.get("tensorflow", "?") for record in side} for side in (a, b)]),
    ):
        if values[0] != values[1]:
            found.append(
                f"the {what} differs: {', '.join(sorted(values[0]))} and {', '.join(sorted(values[1]))}"
            )
    ended = [
        record.id
        for record in (*a, *b)
        if record.state == "running" or (record.exit_code and record.exit_code in _INTERRUPTED)
    ]
    if ended:
        found.append(f"did not end normally: {', '.join(ended)}")
    return found


def changes(a: Sequence[Record], b: Sequence[Record]) -> Changes:
    """Return the findings gone, new and stayed. Two are the same if their kind and source line are, even if moved."""
    before, after = _index_by_source(a), _index_by_source(b)
    return Changes(
        gone=[finding for key, finding in before.items() if key not in after],
        new=[finding for key, finding in after.items() if key not in before],
        stayed=[(before[key], finding) for key, finding in after.items() if key in before],
    )


def _index_by_source(runs: Sequence[Record]) -> dict[tuple[str, str], Finding]:
    found: dict[tuple[str, str], Finding] = {}
    for record in runs:
        for finding in record.findings:
            key = (finding.kind, finding.source.strip() or f"{finding.file}:{finding.line}")
            if key not in found or (found[key].lost_s or 0) < (finding.lost_s or 0):
                found[key] = finding
    return dict(sorted(found.items(), key=lambda item: -(item[1].lost_s or 0)))
