"""Steps that run op by op: eager ops, grouped by the user's function that holds their tape.

A sample of eager work is a stack of the user's frames. It belongs to the innermost function on the stack that opens a
tape, and there only to the loop around the tape: a validation loop of the same function is not part of the step.
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

# Fewer eager ops a step than this are just a read or a counter beside a compiled step.
_MIN_OPS_PER_STEP = 10
# Work that belongs to the steps is seen in at least one of this many.
_OFTEN = 5
_MAX_PARTS = 5
_REMEDY = "Put the loop's ops into a tf.function: one call, not many."


@dataclass(frozen=True)
class _StepFunction:
    """A function that opens a tape, or the loop in it that opens the tape."""

    file: str
    function: str
    loop: UserLoop | None

    def holds(self, frame: UserFrame) -> bool:
        same = (frame.site[0], frame.site[2]) == (self.file, self.function)
        return same and (self.loop is None or self.loop in frame.loops)


def eager_steps(m: Measurements) -> Iterator[Draft]:
    """Yield a draft for each function with a tape whose step runs op by op."""
    tapes = _tapes(m)
    for step, samples in _group_by_owner(m, tapes)[0].items():
        draft = _draft(m, tapes[step], samples)
        if draft is not None:
            yield draft


def eager_loops(m: Measurements) -> Iterator[Draft]:
    """Yield a draft for each other loop of eager ops that cost much beyond their kernels."""
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
    """Group samples by the function to whose step they belong, and the others by the line that causes them."""
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
    """Return the functions that open tapes, each with the line of its first tape. A step may have several tapes.

    A function that is called under another function's tape is part of that function's step.
    """
    found: dict[_StepFunction, SiteKey] = {}
    for site, tally in sorted(m[EagerPart].tapes.items(), key=lambda item: item[0][1]):
        if tally.count >= MIN_REPEATS and tally.detail.get("inside", 0) < tally.count:
            found.setdefault(_StepFunction(site[0], site[2], tally.detail.get("loop")), site)
    # Inner loops come before the loops around them.
    return dict(
        sorted(
            found.items(), key=lambda item: item[0].loop.end - item[0].loop.start if item[0].loop else 1 << 40
        )
    )


def _find_stepping_line(m: Measurements, stack: tuple[UserFrame, ...]) -> SiteKey:
    """Return the line that causes this work: in the loop of steps, else in the innermost loop, else the last line."""
    sources = m[StepsPart].phase.sources
    for frame in stack:
        if any(loop in sources for loop in frame.loops):
            return frame.site
    return next((frame.site for frame in stack if frame.loops), stack[0].site)


def _draft(m: Measurements, site: SiteKey, samples: list[_Sample]) -> Draft | None:
    count, ns = sum(found.ops for _, found in samples), sum(found.ns for _, found in samples)
    steps, eager = m[StepsPart].count, m[EagerPart]
    # The time of the kernels is needed either way.
    lost = int(ns * (1 - m[WindowsPart].eager_kernel_share * eager.op_ns / max(1, eager.ns)))
    # Too few ops do not make a loop, nor do few ops a step unless they cost much.
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
    """Return whether this work happens between only a few of the steps, such as when a new model is built."""
    between, seen = max(found.between for _, found in samples), sum(found.samples for _, found in samples)
    steps = m[StepsPart]
    return steps.trains and (between < FEW or between * _OFTEN < min(seen, steps.ticks))


def _is_keras_own(m: Measurements, site: SiteKey, count: int) -> bool:
    """Return whether these are the few ops by which `fit` gets a batch: slow on a busy machine, but not the user's."""
    return site in m[KerasPart].fits and count < _MIN_OPS_PER_STEP * m[StepsPart].count


def _parts(samples: list[_Sample]) -> list[dict[str, Any]]:
    """Return the lines that dispatch the ops, costliest first."""
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
