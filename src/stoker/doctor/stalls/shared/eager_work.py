"""Steps that are no graph: eager ops, by the function of the user's that holds the tape they belong to.

A sample of eager work is a stack of the user's frames. It belongs to the innermost function on it that opens a tape,
and there to the loop the tape is in: what a validation loop of the same function computes is not the step's.
"""

from __future__ import annotations

import linecache
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from stoker.doctor.probes.parts.eager import EagerPart
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.probes.parts.steps import StepsPart
from stoker.doctor.probes.parts.windows import WindowsPart
from stoker.doctor.stalls.shared.draft import FEW, MIN_REPEATS, Draft, is_worth_reporting

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.eager_ops import Dispatched
    from stoker.doctor.probes.loop_turns import UserFrame, UserLoop
    from stoker.doctor.probes.measurements import Measurements

    _Sample = tuple[tuple[UserFrame, ...], Dispatched]

# Fewer eager ops a step than this are the odd read or counter around a compiled step.
_MIN_OPS_PER_STEP = 10
# What belongs to the steps is found in one of so many at least.
_OFTEN = 5
_MAX_PARTS = 5
_REMEDY = "Put the loop's ops into a tf.function: one call, not many."


@dataclass(frozen=True)
class _StepFunction:
    """A function that opens a tape, or the loop in it that does."""

    file: str
    function: str
    loop: UserLoop | None

    def holds(self, frame: UserFrame) -> bool:
        same = (frame.site[0], frame.site[2]) == (self.file, self.function)
        return same and (self.loop is None or self.loop in frame.loops)


def eager_steps(m: Measurements) -> Iterator[Draft]:
    """One for each function with a tape whose step runs op by op."""
    tapes = _tapes(m)
    for step, samples in _group_by_owner(m, tapes)[0].items():
        draft = _draft(m, tapes[step], samples)
        if draft is not None:
            yield draft


def eager_loops(m: Measurements) -> Iterator[Draft]:
    """One for each other loop of eager ops, if they cost more than they compute."""
    for site, samples in _group_by_owner(m, _tapes(m))[1].items():
        draft = None if _is_once(m, samples) else _draft(m, site, samples)
        if (
            draft is not None
            and is_worth_reporting(m, draft.lost_ns or 0)
            and not _is_keras_own(m, site, draft.count)
        ):
            yield replace(draft, remedy=_REMEDY)


def _group_by_owner(
    m: Measurements, tapes: Mapping[_StepFunction, SiteKey]
) -> tuple[dict[_StepFunction, list[_Sample]], dict[SiteKey, list[_Sample]]]:
    """The samples by the function whose step they belong to, and the others by the line that asks for them."""
    owned: defaultdict[_StepFunction, list[_Sample]] = defaultdict(list)
    others: defaultdict[SiteKey, list[_Sample]] = defaultdict(list)
    for sample in m[EagerPart].stacks.items():
        stack = sample[0]
        owner = next((step for frame in stack for step in tapes if step.holds(frame)), None)
        if owner is not None:
            owned[owner].append(sample)
        else:
            others[_find_stepping_line(m, stack)].append(sample)
    return owned, others


def _tapes(m: Measurements) -> dict[_StepFunction, SiteKey]:
    """The functions that open tapes, each with the line of the first tape; several tapes of one step are one.

    A function that is called under another's tape is part of that one's step.
    """
    found: dict[_StepFunction, SiteKey] = {}
    for site, tally in sorted(m[EagerPart].tapes.items(), key=lambda item: item[0][1]):
        if tally.count >= MIN_REPEATS and tally.detail.get("inside", 0) < tally.count:
            found.setdefault(_StepFunction(site[0], site[2], tally.detail.get("loop")), site)
    # Of loops inside one another the inner one comes first.
    return dict(
        sorted(
            found.items(), key=lambda item: item[0].loop.end - item[0].loop.start if item[0].loop else 1 << 40
        )
    )


def _find_stepping_line(m: Measurements, stack: tuple[UserFrame, ...]) -> SiteKey:
    """The line that asks for this work: in the loop that steps, or in the innermost loop, or the last line."""
    sources = m[StepsPart].phase.sources
    for frame in stack:
        if any(loop in sources for loop in frame.loops):
            return frame.site
    return next((frame.site for frame in stack if frame.loops), stack[0].site)


def _draft(m: Measurements, site: SiteKey, samples: list[_Sample]) -> Draft | None:
    count, ns = sum(found.ops for _, found in samples), sum(found.ns for _, found in samples)
    steps, eager = m[StepsPart].count, m[EagerPart]
    # What the kernels take is needed either way.
    lost = int(ns * (1 - m[WindowsPart].eager_kernel_share * eager.op_ns / max(1, eager.ns)))
    # Without a step to measure by, only a loop of some length is one.
    if count < MIN_REPEATS * _MIN_OPS_PER_STEP or (
        count / max(1, steps) < _MIN_OPS_PER_STEP and not is_worth_reporting(m, lost)
    ):
        return None
    detail: dict[str, Any] = {"ops": count}
    if steps:
        detail["ops_per_step"] = round(count / steps, 1)
    detail["parts"] = _parts(samples)
    return Draft(site, count, ns, lost, detail=detail)


def _is_once(m: Measurements, samples: list[_Sample]) -> bool:
    """Whether this is work between a few of the steps only: a model is built, then training goes on."""
    between, seen = max(found.between for _, found in samples), sum(found.samples for _, found in samples)
    steps = m[StepsPart]
    return steps.trains and (between < FEW or between * _OFTEN < min(seen, steps.ticks))


def _is_keras_own(m: Measurements, site: SiteKey, count: int) -> bool:
    """Whether these are the few ops with which `fit` asks for a batch: dear on a busy machine, but not the user's."""
    return site in m[KerasPart].fits and count < _MIN_OPS_PER_STEP * m[StepsPart].count


def _parts(samples: list[_Sample]) -> list[dict[str, Any]]:
    """The lines that dispatch the ops, costliest first."""
    from stoker.doctor.attach.sites import shown_path

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
