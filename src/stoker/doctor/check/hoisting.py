"""Convert an array once, before the loop: where that is possible, and where it cannot change the results."""

from __future__ import annotations

import ast
import re

from stoker.doctor.check.edits import indentation, insert_line, replace_node
from stoker.doctor.check.rule import Fix
from stoker.doctor.check.source.facts import ArrayFeed
from stoker.doctor.check.source.module import SourceModule
from stoker.doctor.check.source.names import bindings, dotted_name, last_name
from stoker.doctor.check.source.values import Api

_LOOPS = (ast.For, ast.While)
_CONVERSIONS = ("convert_to_tensor", "constant")
_DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# NumPy functions that return a new array.
_FRESH = frozenset(
    {
        "arange",
        "array",
        "concatenate",
        "copy",
        "empty",
        "eye",
        "full",
        "hstack",
        "linspace",
        "ones",
        "repeat",
        "stack",
        "tile",
        "vstack",
        "zeros",
    }
)
# Calls that can reach a variable without naming it in the code.
_LOOKS_UP = re.compile(r"\b(?:globals|locals|vars|exec|eval)\(")


def hoist_conversion(fact: ArrayFeed) -> Fix | None:
    """Return a fix that moves the conversion before the loop, if the loop never changes the array."""
    module, call, name = fact.at.module, fact.at.node, fact.argument
    if not isinstance(call, ast.Call) or not isinstance(name, ast.Name):
        return None
    if last_name(call.func) not in _CONVERSIONS:
        return None
    others: list[ast.expr] = [*call.args[1:], *(k.value for k in call.keywords)]
    if not all(isinstance(node, ast.Constant) or _is_library_name(module, node) for node in others):
        return None
    loop = _find_outermost_invariant(module, call, name.id)
    new = f"{name.id}_tensor"
    if loop is None or re.search(rf"\b{new}\b", module.text):
        return None
    # The fixes of two conversions of one array would define the same name twice.
    if sum(_converts(node, name.id) for node in ast.walk(loop)) > 1:
        return None
    line = loop.lineno
    text = f"{indentation(module, line)}{new} = {module.segment(call)}"
    if "\n" in text or not _starts_line(module, loop):
        return None
    edits = (insert_line(line, text), replace_node(module, call, new))
    safety = "safe" if _is_alone(module, call, name.id) else "unsafe"
    return Fix(safety, edits, f"Convert `{name.id}` once, before the loop")


def _starts_line(module: SourceModule, loop: ast.For | ast.While) -> bool:
    return module.lines[loop.lineno - 1][: loop.col_offset].strip() == ""


def _converts(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.Call) or last_name(node.func) not in _CONVERSIONS:
        return False
    return bool(node.args) and dotted_name(node.args[0]) == name


def _find_outermost_invariant(module: SourceModule, call: ast.Call, name: str) -> ast.For | ast.While | None:
    """Return the outermost loop of the same function that leaves the name and its array unchanged."""
    found: ast.For | ast.While | None = None
    node: ast.AST | None = module.parents.get(call)
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        if isinstance(node, _LOOPS):
            if not _is_only_read(module, node, name):
                break
            found = node
        node = module.parents.get(node)
    return found


def _is_only_read(module: SourceModule, loop: ast.AST, name: str) -> bool:
    for node in ast.walk(loop):
        if isinstance(node, ast.Name) and node.id == name:
            if not isinstance(node.ctx, ast.Load) or not _is_harmless(module, node):
                return False
        elif isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return False
    return True


def _is_harmless(module: SourceModule, node: ast.Name) -> bool:
    """Return whether this use can only read: a conversion, an element, a shape, a length."""
    parent = module.parents[node]
    if isinstance(parent, ast.Subscript):
        return isinstance(parent.ctx, ast.Load) and parent.value is node
    if isinstance(parent, ast.Attribute):
        return parent.attr in ("shape", "dtype", "size", "ndim")
    if isinstance(parent, ast.Call):
        return dotted_name(parent.func) == "len" or last_name(parent.func) in _CONVERSIONS
    return False


def _is_library_name(module: SourceModule, node: ast.expr) -> bool:
    """Return whether an expression is a library's name, such as `tf.float32`, which no loop changes."""
    root = dotted_name(node).split(".", 1)[0]
    return isinstance(node, ast.Attribute) and isinstance(module.scope.names.get(root), Api)


def _is_alone(module: SourceModule, call: ast.Call, name: str) -> bool:
    """Return whether this name is the only reference to the array: made once, never renamed, never passed on."""
    if _LOOKS_UP.search(module.text):
        return False
    function = module.find_enclosing(call, ast.FunctionDef, ast.AsyncFunctionDef)
    local = function is not None and bool(bindings(function, name))
    scope = function if local and function is not None else module.tree
    if not local and any(bindings(node, name) for node in ast.walk(module.tree) if isinstance(node, _DEFS)):
        # Another function uses the same name or declares it global; telling the variables apart is not worth it.
        return False
    bound = bindings(scope, name)
    made = module.parents.get(bound[0]) if len(bound) == 1 else None
    if not isinstance(made, ast.Assign) or len(made.targets) != 1 or not _is_fresh(module, made.value):
        return False
    uses = (n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name)
    return all(isinstance(n.ctx, ast.Store) or _gives_nothing_away(module, n) for n in uses)


def _is_fresh(module: SourceModule, value: ast.expr) -> bool:
    """Return whether an expression makes an array that shares its memory with no other."""
    if isinstance(value, ast.BinOp):
        return True
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    if value.func.attr in ("astype", "copy"):
        return not any(keyword.arg == "copy" for keyword in value.keywords) and len(value.args) <= 1
    root, *rest = dotted_name(value.func).split(".")
    library = module.scope.names.get(root)
    if not isinstance(library, Api) or library.name != "np" or any(k.arg == "copy" for k in value.keywords):
        return False
    return rest[0] == "random" or (len(rest) == 1 and rest[0] in _FRESH)


def _gives_nothing_away(module: SourceModule, node: ast.Name) -> bool:
    """Return whether this use creates no other reference to the array or to a view of it."""
    parent = module.parents[node]
    if isinstance(parent, ast.Subscript):
        around = module.parents[parent]
        return parent.value is node and isinstance(around, (ast.BinOp, ast.Compare, ast.FormattedValue))
    if isinstance(parent, (ast.BinOp, ast.Compare)):
        return True
    return _is_harmless(module, node)
