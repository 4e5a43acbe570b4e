"""Batches made on the host: the repaired step takes rows from a resident tensor, and makes and converts nothing.

A program that keeps its data in a tensor also prepares the data once, before the loop. So the Python that makes a batch
goes away with the conversion, unless the batch depends on what the step has read from a tensor, as in a loop that asks
an agent's world for the next batch.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence

from stoker.doctor.attach.sites import SiteKey
from stoker.doctor.experiments.checking import is_same
from stoker.doctor.experiments.marking import NO_OPS, OwnOps
from stoker.doctor.experiments.rebuilding import CannotRebuildStep
from stoker.doctor.experiments.recorded_step import (
    RecordedFeed,
    RecordedOp,
    RecordedRead,
    RecordedStep,
    is_handle,
)
from stoker.doctor.experiments.timing import Way
from stoker.doctor.experiments.trial import RepairTrial, is_at
from stoker.records import Finding

_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def resident_data(step: RecordedStep, finding: Finding) -> RepairTrial:
    """Return the trial of rows taken from a tensor in place of host data. Data that stays the same is made once."""
    import tensorflow as tf

    same_array = bool(finding.detail.get("same_array"))
    feeds = _feeds(step, finding, alone=same_array)
    if step.goes_on and not all(feed.is_plain for feed in feeds):
        raise CannotRebuildStep("the step is fed objects of the program's own classes")
    batches = [step.values[feed.value] for feed in feeds]
    converted = [feed.convert() for feed in feeds]
    if not all(is_same(batch, again) for batch, again in zip(batches, converted, strict=True)):
        raise CannotRebuildStep("the data has changed since")
    resident = [(tf.concat([batch, batch], 0), int(batch.shape[0])) for batch in batches]

    def convert() -> object:
        return [feed.convert() for feed in feeds]

    def take_rows() -> object:
        return [] if same_array else [rows[size : 2 * size] for rows, size in resident]

    replaces = NO_OPS if same_array or _depends_on_reads(step, feeds) else OwnOps(gaps=_gaps(step, feeds))
    return RepairTrial(Way(convert), Way(take_rows), replaces=replaces)


def _feeds(step: RecordedStep, finding: Finding, alone: bool) -> list[RecordedFeed]:
    """Return what the finding's line feeds and, unless `alone`, what other lines of its function feed."""
    own = [event for event in step.events if isinstance(event, RecordedFeed) and is_at(event.stack, finding)]
    if not own or any(not _has_rows(step, feed) for feed in own):
        raise CannotRebuildStep("the recorded step is not fed at that line")
    functions = {(feed.stack[0][0], feed.stack[0][2]) for feed in own}
    rows = {int(step.values[feed.value].shape[0]) for feed in own}
    return [
        event
        for event in step.events
        if isinstance(event, RecordedFeed)
        and _has_rows(step, event)
        and int(step.values[event.value].shape[0]) in rows
        and (event in own or (not alone and (event.stack[0][0], event.stack[0][2]) in functions))
    ]


def _has_rows(step: RecordedStep, feed: RecordedFeed) -> bool:
    batch = step.values[feed.value]
    return bool(feed.stack and batch.shape.rank) and not is_handle(batch)


def _gaps(step: RecordedStep, feeds: Sequence[RecordedFeed]) -> frozenset[int]:
    """Return the places of the ops that follow each feed: the Python before them made the batch."""
    places = set()
    pending = False
    for event in step.events:
        if isinstance(event, RecordedOp):
            if pending and event.place >= 0:
                places.add(event.place)
                pending = False
        elif any(event is feed for feed in feeds):
            pending = True
    return frozenset(places)


def _depends_on_reads(step: RecordedStep, feeds: Sequence[RecordedFeed]) -> bool:
    """Return whether the fed data is made from what the loop reads from tensors, as far as the source shows."""
    reads = {frame for event in step.events if isinstance(event, RecordedRead) for frame in event.stack}
    return any(_is_made_of(feed.stack, reads) for feed in feeds)


def _is_made_of(stack: Sequence[SiteKey], reads: set[SiteKey]) -> bool:
    for path, line, function in stack:
        lines = {number for file, number, name in reads if (file, name) == (path, function)}
        if lines and lines & _lines_before(path, line):
            return True
    return False


def _lines_before(path: str, line: int) -> set[int]:
    """Return the lines of the loop around a line whose results that line uses, directly or not."""
    tree = _parse(path)
    loop = _loop_around(tree, line)
    if loop is None:
        return set()
    imported = {(alias.asname or alias.name).split(".")[0] for alias in _imports(tree)}
    statements = [node for node in ast.walk(loop) if isinstance(node, ast.stmt) and node is not loop]
    simple = [node for node in statements if not isinstance(node, (*_LOOPS, ast.If, ast.With, ast.Try))]
    wanted = {
        name for node in simple if _spans(node, line) for name in _names(node) - _stored(node)
    } - imported
    found: set[int] = set()
    # Follow the changes from turn to turn, until no more lines are found.
    for _ in range(len(simple)):
        more = [n for n in simple if n.lineno not in found and wanted & _changed(n)]
        if not more:
            break
        for node in more:
            found.add(node.lineno)
            wanted |= _names(node) - imported
    return {number for node in simple if node.lineno in found for number in _lines_of(node)}


def _parse(path: str) -> ast.Module:
    """Parse the program's source; return an empty module if the source cannot be read."""
    try:
        return ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _imports(tree: ast.Module) -> list[ast.alias]:
    return [
        alias
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    ]


def _loop_around(tree: ast.Module, line: int) -> ast.stmt | None:
    """Return the outermost loop around a line within its function; None if there is none."""
    around = [
        node for node in ast.walk(tree) if isinstance(node, (*_LOOPS, *_FUNCTIONS)) and _spans(node, line)
    ]
    functions = [node for node in around if isinstance(node, _FUNCTIONS)]
    first = max((node.lineno for node in functions), default=0)
    loops = [node for node in around if isinstance(node, _LOOPS) and node.lineno > first]
    return min(loops, key=lambda node: node.lineno, default=None)


def _spans(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _names(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}


def _changed(node: ast.stmt) -> set[str]:
    """Return the names that a statement assigns, or whose objects it may change by calling their methods."""
    called = {
        c.func.value.id
        for c in ast.walk(node)
        if isinstance(c, ast.Call)
        and isinstance(c.func, ast.Attribute)
        and isinstance(c.func.value, ast.Name)
    }
    return _stored(node) | called


def _stored(node: ast.stmt) -> set[str]:
    return {c.id for c in ast.walk(node) if isinstance(c, ast.Name) and isinstance(c.ctx, ast.Store)}
