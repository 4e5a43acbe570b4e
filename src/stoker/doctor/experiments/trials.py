"""For each kind of repair: what is timed of the recorded step, as it was and as repaired."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from stoker.doctor.attach.sites import shown_path
from stoker.doctor.experiments.checking import check_rebuilt, set_variables
from stoker.doctor.experiments.rebuilding import (
    CannotRebuild,
    check_repeatable,
    is_input,
    is_random,
    rebuild,
    replay,
)
from stoker.doctor.experiments.recording import RecordedOp, RecordedStep
from stoker.doctor.experiments.timing import Way
from stoker.records import Finding

# Fewer ops are not what the finding is about.
_FEW_OPS = 5


@dataclass(frozen=True)
class Trial:
    """Two ways to do the same part of a step, checked to compute the same."""

    was: Way
    repaired: Way
    # Steps that one call of each way does.
    steps: int = 1


def as_graph(step: RecordedStep, finding: Finding) -> Trial:
    """The finding's eager ops in one compiled function."""
    ops = [op for op in step.ops() if _is_of(op, finding) and not is_input(op)]
    if len(ops) < _FEW_OPS:
        raise CannotRebuild("the recorded step holds too few of its ops")
    for op in ops:
        check_repeatable(op, step.functions)
    rebuilt = rebuild(step, ops)
    checked = rebuild(step, ops, frozen=True) if any(is_random(op) for op in ops) else rebuilt
    check_rebuilt(step, ops, checked)
    prepare = partial(set_variables, step.before)
    return Trial(Way(replay(step, ops), prepare), Way(rebuilt, prepare))


def _is_of(op: RecordedOp, finding: Finding) -> bool:
    """Whether an op was asked for by the function of a finding; of a loop's ops, by its line."""
    of_line = finding.kind != "eager-train-step"
    return any(
        shown_path(file) == finding.file
        and function == finding.function
        and (not of_line or line == finding.line)
        for file, line, function in op.stack
    )


# By the names that repairs give to their experiments.
TRIALS: Mapping[str, Callable[[RecordedStep, Finding], Trial]] = {"as-graph": as_graph}


def best_step(steps: Sequence[RecordedStep], finding: Finding) -> RecordedStep | None:
    """The recorded step that holds most of the finding's ops."""
    return max(steps, key=lambda step: sum(_is_of(op, finding) for op in step.ops()), default=None)
