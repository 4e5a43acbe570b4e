"""Run statements: what they bind, which branches they take, what they define."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stoker.doctor.check.source import classes, guesses, imports, loops, reads
from stoker.doctor.check.source.binding import bind
from stoker.doctor.check.source.gates import find_rare_branch, initialises, resets_counter, runs_every_few
from stoker.doctor.check.source.names import dotted_name
from stoker.doctor.check.source.operators import arithmetic
from stoker.doctor.check.source.values import NONE, UNKNOWN, Class, Instance, Py, Seq, Thing, Value, join

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def run_block(m: Machine, body: Sequence[ast.stmt]) -> bool:
    """Run statements. Return whether control certainly leaves before the end."""
    frame = m.frame
    hot, repeated = frame.hot, frame.repeated
    try:
        for statement in body:
            if not m.spend():
                return False
            handler = _HANDLERS.get(type(statement))
            if handler is not None:
                handler(m, statement)
            if isinstance(statement, _LEAVING):
                return True
            if isinstance(statement, ast.If) and _skips_the_rest(m, statement):
                # `if step % 100: continue` makes the rest of the body rare.
                frame.hot = frame.repeated = False
        return False
    finally:
        frame.hot, frame.repeated = hot, repeated


def _skips_the_rest(m: Machine, node: ast.If) -> bool:
    leaves = isinstance(node.body[-1], (ast.Continue, ast.Return)) and not node.orelse
    return leaves and find_rare_branch(m, node.test) == "else"


def _assign(m: Machine, node: ast.Assign) -> None:
    value = m.value(node.value)
    if m.frame.loops and isinstance(value, Py) and _mentions_itself(node):
        value = replace(value, varies=True, const=None)
    for target in node.targets:
        bind(m, target, value)


def _mentions_itself(node: ast.Assign) -> bool:
    names = {target.id for target in node.targets if isinstance(target, ast.Name)}
    return any(isinstance(child, ast.Name) and child.id in names for child in ast.walk(node.value))


def _assign_annotated(m: Machine, node: ast.AnnAssign) -> None:
    if node.value is not None:
        bind(m, node.target, m.value(node.value))


def _assign_augmented(m: Machine, node: ast.AugAssign) -> None:
    left = m.value(node.target)
    value = arithmetic(m, node, node.op, left, m.value(node.value))
    if isinstance(value, Py):
        in_loop = m.frame.loops or isinstance(node.target, ast.Attribute)
        value = replace(value, varies=bool(in_loop) or value.varies, const=None)
    _note_outside_change(m, node)
    bind(m, node.target, value)


def _note_outside_change(m: Machine, node: ast.AugAssign) -> None:
    """Note `self.count += 1`, or a change of a global counter, inside a graph: it counts traces, not calls."""
    frame = m.frame
    if frame.traced is None:
        return
    target = node.target
    held = m.value(target)
    if isinstance(target, ast.Attribute) and (isinstance(held, (Py, Seq)) or _starts_as_number(m, target)):
        m.side_effect(node, f"`{ast.unparse(target)}` is changed")
    elif isinstance(target, ast.Name) and target.id not in frame.scope.names and isinstance(held, Py):
        m.side_effect(node, f"the outer variable `{target.id}` is changed")


def _starts_as_number(m: Machine, target: ast.Attribute) -> bool:
    """Return whether any method of the class, even one not run yet, sets this attribute to a number."""
    owner = m.value(target.value)
    return isinstance(owner, Instance) and target.attr in _number_attributes(owner.info.node)


@functools.lru_cache(maxsize=64)
def _number_attributes(node: ast.ClassDef) -> frozenset[str]:
    return frozenset(
        target.attr
        for child in ast.walk(node)
        if isinstance(child, ast.Assign) and isinstance(child.value, ast.Constant)
        if type(child.value.value) in (int, float)
        for target in child.targets
        if isinstance(target, ast.Attribute) and dotted_name(target.value) == "self"
    )


def _expression(m: Machine, node: ast.Expr) -> None:
    m.value(node.value)


def _if(m: Machine, node: ast.If) -> None:
    if m.frame.module is not m.main and _asks_for_main(node.test):
        return
    test = m.value(node.test)
    reads.note_test(m, node.test, test)
    rare = find_rare_branch(m, node.test)
    if not rare and _runs_once(node):
        rare = "body"
    names = m.frame.scope.names
    before = dict(names)
    first_time = initialises(node.test, node.body)
    m.initialising += first_time
    body_leaves = _branch(m, node.body, rare == "body", again=rare == "body" and runs_every_few(m, node.test))
    m.initialising -= first_time
    after_body = dict(names)
    _restore(names, before)
    else_leaves = _branch(m, node.orelse, rare == "else" and bool(node.orelse))
    if body_leaves:
        return
    if else_leaves and node.orelse:
        _restore(names, after_body)
        return
    for name, value in after_body.items():
        other = names.get(name)
        names[name] = value if other is None else join(value, other)


def _runs_once(node: ast.If) -> bool:
    leaves = isinstance(node.body[-1], (ast.Raise, ast.Break))
    return leaves or resets_counter(node.test, node.body) or initialises(node.test, node.body)


def _asks_for_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def _restore(names: dict[str, Value], before: dict[str, Value]) -> None:
    names.clear()
    names.update(before)


def _branch(m: Machine, body: Sequence[ast.stmt], rare: bool, *, again: bool = False) -> bool:
    """Run a branch. A rare one may still run `again` and again."""
    frame = m.frame
    loop = m.loops[-1] if m.loops else None
    if rare and loop is not None and loop.strong and not loop.often:
        # The loop steps nowhere else, so `if filled == batch_size:` is its step, however rarely it runs.
        rare = False
    m.rare += rare
    try:
        with m.running(hot=frame.hot and not rare, repeated=frame.repeated and (again or not rare)):
            return m.block(body)
    finally:
        m.rare -= rare


def _for(m: Machine, node: ast.For | ast.AsyncFor) -> None:
    iterated = m.value(node.iter)
    if iterated is UNKNOWN:
        iterated = guesses.guess_iterable(m, node.iter)
    over = loops.walk(iterated)

    def body() -> None:
        bind(m, node.target, over.element)
        m.block(node.body)

    loops.run(m, node, over, body, once=loops.always_leaves(node.body))
    m.block(node.orelse)


def _while(m: Machine, node: ast.While) -> None:
    def body() -> None:
        reads.note_test(m, node.test, m.value(node.test))
        m.block(node.body)

    loops.run(m, node, loops.Walk(UNKNOWN, counts=True), body, once=loops.always_leaves(node.body))
    m.block(node.orelse)


def _with(m: Machine, node: ast.With | ast.AsyncWith) -> None:
    tapes: list[ast.expr] = []
    graph = m.frame.graph
    for item in node.items:
        value = m.value(item.context_expr)
        if isinstance(value, Thing) and value.type == "tape":
            tapes.append(item.context_expr)
        graph = graph or (isinstance(value, Thing) and value.type == "graph")
        if item.optional_vars is not None:
            bind(m, item.optional_vars, value)
    if tapes and not m.tapes:
        # A nested tape, as for a gradient penalty, belongs to the step of the outer one. Note the tape before its
        # block: some programs apply the gradients while the tape is still open.
        m.tape(tapes[0])
    m.tapes += len(tapes)
    try:
        with m.running(hot=m.frame.hot, repeated=m.frame.repeated, graph=graph):
            m.block(node.body)
    finally:
        m.tapes -= len(tapes)
    if tapes:
        m.work(strong=True)


def _try(m: Machine, node: ast.Try) -> None:
    m.block(node.body)
    for handler in node.handlers:
        if handler.name:
            m.frame.scope.names[handler.name] = UNKNOWN
        _branch(m, handler.body, rare=True)
    m.block(node.orelse)
    m.block(node.finalbody)


def _function(m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    m.frame.scope.names[node.name] = classes.define_function(m, node)


def _class(m: Machine, node: ast.ClassDef) -> None:
    m.frame.scope.names[node.name] = Class(classes.class_info(m, node))


def _return(m: Machine, node: ast.Return) -> None:
    value = NONE if node.value is None else m.value(node.value)
    m.frame.returns.append(value)


def _assert(m: Machine, node: ast.Assert) -> None:
    reads.note_test(m, node.test, m.value(node.test))


def _raise(m: Machine, node: ast.Raise) -> None:
    if node.exc is not None:
        with m.running(hot=False, repeated=False):
            m.value(node.exc)


def _delete(m: Machine, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            m.frame.scope.names.pop(target.id, None)


def _match(m: Machine, node: ast.Match) -> None:
    m.value(node.subject)
    for case in node.cases:
        for child in ast.walk(case.pattern):
            if isinstance(child, (ast.MatchAs, ast.MatchStar)) and child.name:
                m.frame.scope.names[child.name] = UNKNOWN
        m.block(case.body)


_HANDLERS: dict[type[ast.AST], Callable[[Machine, Any], None]] = {
    ast.Assign: _assign,
    ast.AnnAssign: _assign_annotated,
    ast.AugAssign: _assign_augmented,
    ast.Expr: _expression,
    ast.If: _if,
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _while,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Return: _return,
    ast.Import: imports.run_import,
    ast.ImportFrom: imports.run_import_from,
    ast.Assert: _assert,
    ast.Raise: _raise,
    ast.Delete: _delete,
    ast.Match: _match,
}
if hasattr(ast, "TryStar"):  # Python 3.11 and later
    _HANDLERS[ast.TryStar] = _try
