"""Find out what loops walk over, and whether one iteration is one step.

A loop of steps walks over batches, or calls a model or a compiled step directly. A loop around such a loop is an
epoch loop: its other work happens once an epoch and costs too little to report.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stoker.doctor.check.source.facts import Consumed
from stoker.doctor.check.source.frames import LoopState
from stoker.doctor.check.source.values import (
    UNKNOWN,
    Dataset,
    Py,
    Seq,
    Tensor,
    Thing,
    Value,
    element_of,
    join,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

# A loop of no more than this many iterations is not worth reporting.
_SHORT = 3
# An inner loop of at most this many rounds, such as the critic's in a WGAN, is a part of the outer loop's step.
_FEW_INSIDE = 8
_EPOCHS = re.compile(r"epoch|fold|trial|\bep\b|repeat|run")
# `take(k)` of at most this many batches is only a look at the data.
LOOK = 20
# Elements of loops that go through the parts of a model rather than through steps.
_PARTS = frozenset({"layer", "metric", "model", "optimizer", "callback"})


@dataclass(frozen=True)
class Walk:
    """The values that a loop walks over."""

    element: Value
    dataset: Dataset | None = None
    length: int | None = None
    # The other pipelines that `zip` walks over at the same time.
    beside: tuple[Dataset, ...] = ()
    # Whether the loop goes through layers, variables or gradients, and so is a part of one step.
    parts: bool = False
    # Whether the loop counts or waits (`range`, `while`). Such a loop is one of steps if it computes with tensors
    # at all; a walk over a short list is not.
    counts: bool = False


def walk(value: Value) -> Walk:
    """Return what a loop over a value walks over, looking inside `enumerate`, `zip`, `tqdm` and `iter`."""
    if isinstance(value, Thing) and value.type == "progress":
        return walk(value.about.get("over", UNKNOWN))
    if isinstance(value, Thing) and value.type == "iterator":
        return Walk(value.about["dataset"].element, value.about["dataset"])
    if isinstance(value, Dataset):
        return Walk(value.element, value, count_taken(value))
    if isinstance(value, Seq):
        if value.source is not None:
            inner = walk(value.source)
            length = _find_shortest(inner.length, value.length)
            others = [walk(other) for other in value.beside]
            found = [dataset for w in others for dataset in (w.dataset, *w.beside) if dataset is not None]
            beside = (*inner.beside, *found)
            return Walk(element_of(value), inner.dataset, length, beside, inner.parts, inner.counts)
        element = element_of(value)
        length = len(value.items) if value.items is not None and value.kind != "dict" else value.length
        return Walk(element, None, length, parts=_is_part(element), counts=value.kind == "range")
    return Walk(element_of(value))


def _find_shortest(*lengths: int | None) -> int | None:
    known = [length for length in lengths if length is not None]
    return min(known) if known else None


def _is_part(element: Value) -> bool:
    if isinstance(element, Thing):
        return element.type in _PARTS
    if isinstance(element, Seq) and element.items:
        return any(_is_part(item) for item in element.items)
    return isinstance(element, Tensor) and not element.host


def count_taken(dataset: Dataset) -> int | None:
    """Return the number of elements that `take` leaves of a pipeline; None means all."""
    for stage in reversed(dataset.stages):
        if stage.name == "take" and isinstance(stage.argument, Py) and isinstance(stage.argument.const, int):
            return stage.argument.const if stage.argument.const >= 0 else None
        if stage.name in ("repeat", "batch", "flat_map", "interleave"):
            return None
    return None


def run(m: Machine, node: ast.AST, over: Walk, body: Callable[[], None], *, once: bool = False) -> None:
    """Run a loop's body twice: first without emitting facts, to see what kind of loop it is, then with them."""
    # A compiled function may walk over a whole dataset: its loop is then the loop of steps.
    within_step = m.within_step if over.dataset is None else m.tapes > 0 or m.forwards > 0
    loop = LoopState(node, within_step=within_step)
    in_graph_only = m.frame.graph and not m.tapes and not m.forwards
    if over.dataset is not None:
        m.note("+iterates")
    m.loops.append(loop)
    m.frame.loops.append(node)
    rare, m.rare = m.rare, 0
    before = dict(m.frame.scope.names)
    try:
        hot, repeated = m.frame.hot, m.frame.repeated
        with m.quietly(), m.running(hot=False, repeated=repeated or not once):
            body()
        _merge(m, before)
        if not m.muted:
            hot, repeated = _circumstances(m, loop, over, once)
            with m.running(hot=hot, repeated=repeated):
                body()
            _merge(m, before)
            if over.dataset is not None and (loop.strong or loop.inner_steps) and not once:
                for dataset in (over.dataset, *over.beside):
                    m.emit(Consumed(m.at(node), dataset, "loop"))
    finally:
        m.rare = rare
        m.loops.pop()
        m.frame.loops.pop()
        if in_graph_only and loop.trains:
            # A compiled function trains many times in one call: `for _ in tf.range(steps): ...`.
            loop.within_step = False
        _hand_up(m, loop, over, once)


def is_steps(loop: LoopState, over: Walk, *, nested: bool = False) -> bool:
    """Return whether one iteration of the loop is one step.

    The outermost loop around a loop of steps is an epoch loop. A nested loop that steps and also calls a loop of
    steps (an agent acts, then replays) is a loop of steps, unless its variable says that it counts epochs.
    """
    if over.dataset is not None:
        return loop.strong or loop.weak
    if loop.inner_steps:
        return nested and loop.strong and not loop.fits and not counts_epochs(loop.node)
    return loop.strong or (loop.weak and over.counts)


def counts_epochs(node: ast.AST) -> bool:
    """Return whether the name of a loop's variable says that each iteration is at least one pass over the data."""
    return bool(_EPOCHS.search(_target(node)))


def _target(node: ast.AST) -> str:
    return ast.unparse(node.target).lower() if isinstance(node, (ast.For, ast.AsyncFor)) else ""


def is_short(over: Walk) -> bool:
    """Return whether the loop ends after a few iterations, or only looks at a few batches."""
    if over.dataset is not None and over.length is not None:
        return over.length <= LOOK
    return over.length is not None and over.length <= _SHORT


def _circumstances(m: Machine, loop: LoopState, over: Walk, once: bool) -> tuple[bool, bool]:
    frame = m.frame
    if once or is_short(over):
        return frame.hot, frame.repeated
    if over.parts:
        return frame.hot, True
    if is_steps(loop, over, nested=len(m.loops) > 1) and not _is_beside_steps(m, loop, over):
        # A function without seen callers may be meant for a graph, unless it steps or reads tensors itself.
        certain = loop.strong or over.dataset is not None or frame.presumed is None or _is_eager(m)
        return certain, True
    return frame.hot and not loop.inner_steps, True


def _is_beside_steps(m: Machine, loop: LoopState, over: Walk) -> bool:
    """Return whether the loop, such as `for i in range(len(images))`, does light work beside another loop's steps."""
    light = over.dataset is None and not loop.strong
    return light and any(outer.inner_steps for outer in m.loops[:-1])


def _is_eager(m: Machine) -> bool:
    function = m.frame.function
    if function is None:
        return True
    lines = m.frame.module.lines[function.lineno - 1 : function.end_lineno]
    return any(".numpy()" in line for line in lines)


def _hand_up(m: Machine, loop: LoopState, over: Walk, once: bool) -> None:
    """Record what a loop did in the loop around it."""
    steps = (is_steps(loop, over) and (loop.strong or over.dataset is not None)) or loop.inner_steps
    few = over.length is not None and over.dataset is None and over.length <= _FEW_INSIDE
    part_of_a_step = loop.within_step or over.parts or once or is_short(over) or few
    if steps and not part_of_a_step and not m.rare:
        m.note("+steps")
    if not m.loops:
        return
    outer = m.loops[-1]
    outer.fits |= loop.fits
    if steps and not part_of_a_step:
        # A loop that runs rarely, such as an evaluation every N steps, does not turn the one around into an epoch loop.
        outer.inner_steps |= not m.rare
        return
    outer.strong |= loop.strong
    outer.often |= loop.strong and not m.rare
    # Each element of something unknown may be one step, so light work on it says nothing about the loop around.
    outer.weak |= loop.weak and (part_of_a_step or over.counts)
    outer.inner_steps |= loop.inner_steps and not m.rare


def _merge(m: Machine, before: dict[str, Value]) -> None:
    """Join the values that names hold after a loop with those before it, since the body may not have run."""
    names = m.frame.scope.names
    for name, old in before.items():
        new = names.get(name)
        if new is not None and new is not old:
            names[name] = join(old, new)


def always_leaves(body: list[ast.stmt]) -> bool:
    """Return whether the loop ends in its first pass, with an unconditional `break` or `return`."""
    return bool(body) and isinstance(body[-1], (ast.Break, ast.Return)) and not _continues(body)


def _continues(body: list[ast.stmt]) -> bool:
    return any(isinstance(child, ast.Continue) for statement in body for child in ast.walk(statement))
