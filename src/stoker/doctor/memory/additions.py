"""The line of the program that adds to a list, a dict or a deque of a given name."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator

from stoker.doctor.attach.sites import SiteKey

_ADDING = frozenset({"append", "extend", "insert", "appendleft", "add", "update", "setdefault"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def find_addition(file: str, function: str, name: str) -> SiteKey | None:
    """Return where a file adds to what it calls `name`, preferably in this function, and in a loop.

    If nothing adds to it, return the line that first gives the name a value.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
    places = list(_places(tree, name, "<module>", in_loop=False))
    if not places:
        return None
    best = max(places, key=lambda place: (place[0], place[3] == function, place[1], -place[2]))
    return file, best[2], best[3]


def _places(node: ast.AST, name: str, function: str, in_loop: bool) -> Iterator[tuple[bool, bool, int, str]]:
    """Yield each place: whether it adds to the name, whether it is in a loop, its line and its function."""
    if isinstance(node, ast.stmt | ast.Call):
        if _adds(node, name):
            yield True, in_loop, node.lineno, function
        elif isinstance(node, ast.Assign | ast.AnnAssign) and _names_target(node, name):
            yield False, in_loop, node.lineno, function
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, _Function) else function
        loops = isinstance(child, _LOOPS) or (in_loop and not isinstance(child, _Function))
        yield from _places(child, name, inside, loops)


def _adds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in _ADDING and name in _chain(node.func.value)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Add) and name in _chain(node.target)
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Subscript) and name in _chain(target) for target in node.targets)
    return False


def _names_target(node: ast.Assign | ast.AnnAssign, name: str) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return any(name in _chain(target) for target in targets)


def _chain(node: ast.AST) -> set[str]:
    """Return the names in an expression: `self.log["loss"]` has self and log."""
    names: set[str] = set()
    while True:
        if isinstance(node, ast.Attribute):
            names.add(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            break
    return names | {node.id} if isinstance(node, ast.Name) else names
