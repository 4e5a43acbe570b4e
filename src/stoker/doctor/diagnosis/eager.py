"""Steps that are no graph: eager ops, by the function of the user's that holds the tape they belong to.

A sample of eager work is a stack of the user's frames. It belongs to the innermost function on it that opens a tape,
and there to the loop the tape is in: what a validation loop of the same function computes is not the step's.
"""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stoker.doctor.attach.sites import SiteKey, shown_path
from stoker.doctor.diagnosis.draft import FEW, MIN_REPEATS, Draft, worth
from stoker.doctor.diagnosis.ledger import eager_kernel_share
from stoker.doctor.probes.eager_ops import Dispatched
from stoker.doctor.probes.loop_turns import Loop, UserFrame
from stoker.doctor.probes.session import Measurements

# Fewer eager ops a step than this are the odd read or counter around a compiled step.
_MIN_OPS_PER_STEP = 10
# What belongs to the steps is found in one of so many at least.
_OFTEN = 5
_MAX_PARTS = 5
_REMEDY = "Put the loop's ops into a tf.function: one call, not many."

_Sample = tuple[tuple[UserFrame, ...], Dispatched]


@dataclass(frozen=True)
class _StepFunction:
    """A function that opens a tape, or the loop in it that does."""

    file: str
    function: str
    loop: Loop | None

    def holds(self, frame: UserFrame) -> bool:
        same = (frame.site[0], frame.site[2]) == (self.file, self.function)
        return same and (self.loop is None or self.loop in frame.loops)


def find(m: Measurements) -> Iterator[Draft]:
    """`eager-train-step` for each function with a tape; `launch-bound` for the other loops of eager ops."""
    tapes = _tapes(m)
    owned: defaultdict[_StepFunction, list[_Sample]] = defaultdict(list)
    others: defaultdict[SiteKey, list[_Sample]] = defaultdict(list)
    for sample in m.eager_stacks.items():
        stack = sample[0]
        owner = next((step for frame in stack for step in tapes if step.holds(frame)), None)
        if owner is not None:
            owned[owner].append(sample)
        else:
            others[_stepping_line(m, stack)].append(sample)
    for step, samples in owned.items():
        yield from _draft(m, "eager-train-step", tapes[step], samples)
    for site, samples in others.items():
        if not _once(m, samples):
            yield from _draft(m, "launch-bound", site, samples)


def _tapes(m: Measurements) -> dict[_StepFunction, SiteKey]:
    """The functions that open tapes, each with the line of the first tape; several tapes of one step are one.

    A function that is called under another's tape is part of that one's step.
    """
    found: dict[_StepFunction, SiteKey] = {}
    for site, tally in sorted(m.tallies.get("tape", {}).items(), key=lambda item: item[0][1]):
        if tally.count >= MIN_REPEATS and tally.detail.get("inside", 0) < tally.count:
            found.setdefault(_StepFunction(site[0], site[2], tally.detail.get("loop")), site)
    # Of loops inside one another the inner one comes first.
    return dict(
        sorted(
            found.items(), key=lambda item: item[0].loop.end - item[0].loop.start if item[0].loop else 1 << 40
        )
    )


def _stepping_line(m: Measurements, stack: tuple[UserFrame, ...]) -> SiteKey:
    """The line of the loop that steps from which this work is asked for; else the innermost loop's, else the last."""
    for frame in stack:
        if any(loop in m.step_sources for loop in frame.loops):
            return frame.site
    return next((frame.site for frame in stack if frame.loops), stack[0].site)


def _draft(m: Measurements, kind: str, site: SiteKey, samples: list[_Sample]) -> Iterator[Draft]:
    count, ns = sum(found.ops for _, found in samples), sum(found.ns for _, found in samples)
    steps = max(1, m.steps)
    # What the kernels take is needed either way.
    lost = int(ns * (1 - eager_kernel_share(m) * m.eager_op_ns / max(1, m.eager_ns)))
    dear = worth(m, lost)
    # Without a step to measure by, only a loop of some length is one.
    if count < MIN_REPEATS * _MIN_OPS_PER_STEP or (count / steps < _MIN_OPS_PER_STEP and not dear):
        return
    if kind == "launch-bound" and (not dear or _is_keras_own(m, site, count)):
        return
    detail: dict[str, Any] = {"ops": count}
    if m.steps:
        detail["ops_per_step"] = round(count / steps, 1)
    detail["parts"] = _parts(samples)
    yield Draft(
        kind, site, count, ns, lost, remedy=_REMEDY if kind == "launch-bound" else None, detail=detail
    )


def _once(m: Measurements, samples: list[_Sample]) -> bool:
    """Whether this is work between a few of the steps only: a model is built, then training goes on."""
    between, seen = max(found.between for _, found in samples), sum(found.samples for _, found in samples)
    return m.trains and (between < FEW or between * _OFTEN < min(seen, m.ticks))


def _is_keras_own(m: Measurements, site: SiteKey, count: int) -> bool:
    """Whether these are the few ops with which `fit` asks for a batch: dear on a busy machine, but not the user's."""
    return site in m.fits and count < _MIN_OPS_PER_STEP * m.steps


def _parts(samples: list[_Sample]) -> list[dict[str, Any]]:
    """The lines that dispatch the ops, costliest first."""
    lines: defaultdict[SiteKey, list[int]] = defaultdict(lambda: [0, 0])
    for stack, found in samples:
        sums = lines[stack[0].site]
        sums[0] += found.ops
        sums[1] += found.ns
    dearest = sorted(lines.items(), key=lambda item: -item[1][1])[:_MAX_PARTS]
    return [
        {
            "file": shown_path(site[0]),
            "line": site[1],
            "function": site[2],
            "source": linecache.getline(site[0], site[1]).strip(),
            "ops": count,
            "seconds": round(ns / 1e9, 6),
        }
        for site, (count, ns) in dearest
    ]
