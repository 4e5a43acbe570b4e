"""Make edits from syntax nodes."""

from __future__ import annotations

import ast

from stoker.doctor.check.rule import Edit, character
from stoker.doctor.check.source.module import SourceModule
from stoker.doctor.check.source.names import bindings
from stoker.doctor.check.source.values import Api


def place(module: SourceModule, node: ast.AST, *, end: bool = False) -> tuple[int, int]:
    """Return the line and column, in characters, where a node starts or ends."""
    line = int(getattr(node, "end_lineno" if end else "lineno"))
    offset = int(getattr(node, "end_col_offset" if end else "col_offset"))
    return line, character(module, line, offset)


def insert_after(module: SourceModule, node: ast.AST, text: str) -> Edit:
    """Insert text directly after a node."""
    line, column = place(module, node, end=True)
    return Edit(line, column, line, column, text)


def insert_line(line: int, text: str) -> Edit:
    """Insert a line of text above the given line."""
    return Edit(line, 0, line, 0, text + "\n")


def replace_node(module: SourceModule, node: ast.AST, text: str) -> Edit:
    """Replace a node with text."""
    line, column = place(module, node)
    end_line, end_column = place(module, node, end=True)
    return Edit(line, column, end_line, end_column, text)


def remove_between(module: SourceModule, left: ast.AST, right: ast.AST) -> Edit:
    """Remove everything from the end of one node to the end of another, such as the tail `.prefetch(1)` of a call."""
    line, column = place(module, left, end=True)
    end_line, end_column = place(module, right, end=True)
    return Edit(line, column, end_line, end_column, "")


def add_argument(module: SourceModule, call: ast.Call, text: str) -> Edit | None:
    """Add an argument at the end of a call. Return None if the place for it is not clear from the text."""
    line, column = place(module, call, end=True)
    if column < 1 or module.lines[line - 1][column - 1] != ")":
        return None
    given: list[ast.expr] = [*call.args, *(keyword.value for keyword in call.keywords)]
    if not given:
        return Edit(line, column - 1, line, column - 1, text)
    last = max(given, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0))
    between = _read_between(module, place(module, last, end=True), (line, column - 1))
    if between.strip() == "":
        after = place(module, last, end=True)
        return Edit(*after, *after, f", {text}")
    if between.strip() == ",":
        # Keep the style of one argument per line.
        if "\n" in between:
            margin = " " * place(module, given[0])[1]
            at_line, at_column = _find_after_comma(module, last)
            return Edit(at_line, at_column, at_line, at_column, f"\n{margin}{text},")
        return Edit(line, column - 1, line, column - 1, f" {text}" if between.endswith(",") else text)
    return None


def remove_argument(module: SourceModule, call: ast.Call, gone: ast.keyword) -> Edit | None:
    """Remove an argument and its comma from a call. Return None if the text between the arguments is unexpected."""
    if _is_alone_on_lines(module, gone):
        return _remove_lines(module, gone.lineno, gone.end_lineno or gone.lineno)
    given: list[ast.expr | ast.keyword] = sorted(
        [*call.args, *call.keywords], key=lambda node: (node.lineno, node.col_offset)
    )
    at = next(number for number, node in enumerate(given) if node is gone)
    end = place(module, gone, end=True)
    if at:
        before = place(module, given[at - 1], end=True)
        between = _read_between(module, before, place(module, gone))
        return Edit(*before, *end, "") if between.strip() == "," else None
    start = place(module, gone)
    if len(given) > 1:
        after = place(module, given[1])
        return Edit(*start, *after, "") if _read_between(module, end, after).strip() == "," else None
    line, column = place(module, call, end=True)
    rest = _read_between(module, end, (line, column - 1))
    return Edit(*start, line, column - 1, "") if rest.strip() in ("", ",") else None


def _is_alone_on_lines(module: SourceModule, argument: ast.keyword) -> bool:
    """Return whether an argument's lines hold nothing else except its comma and a comment."""
    line, column = place(module, argument)
    end_line, end_column = place(module, argument, end=True)
    behind = module.lines[end_line - 1][end_column:].strip().removeprefix(",").strip()
    return not module.lines[line - 1][:column].strip() and (not behind or behind.startswith("#"))


def remove_statement(module: SourceModule, statement: ast.stmt) -> Edit | None:
    """Remove the lines of a statement. Return None if it shares them, or if its block would be empty."""
    line, column = place(module, statement)
    end_line, end_column = place(module, statement, end=True)
    behind = module.lines[end_line - 1][end_column:].strip()
    if module.lines[line - 1][:column].strip() or (behind and not behind.startswith("#")):
        return None
    parent = module.parents[statement]
    blocks = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
    alone = any(isinstance(block, list) and block == [statement] for block in blocks)
    return (
        None if alone or len(module.lines) <= end_line - line + 1 else _remove_lines(module, line, end_line)
    )


def _remove_lines(module: SourceModule, first: int, last: int) -> Edit:
    if last < len(module.lines) or first == 1:
        return Edit(first, 0, last + 1, 0, "")
    # The last line of a file may lack a newline.
    return Edit(first - 1, len(module.lines[first - 2]), last, len(module.lines[last - 1]), "")


def _find_after_comma(module: SourceModule, node: ast.AST) -> tuple[int, int]:
    line, column = place(module, node, end=True)
    while True:
        found = module.lines[line - 1].find(",", column)
        if found >= 0:
            return line, found + 1
        line, column = line + 1, 0


def _read_between(module: SourceModule, start: tuple[int, int], end: tuple[int, int]) -> str:
    if start[0] == end[0]:
        return module.lines[start[0] - 1][start[1] : end[1]]
    parts = [module.lines[start[0] - 1][start[1] :]]
    parts += module.lines[start[0] : end[0] - 1]
    parts.append(module.lines[end[0] - 1][: end[1]])
    return "\n".join(parts)


def tensorflow_name(module: SourceModule, node: ast.AST) -> str | None:
    """Return the name under which the file imports TensorFlow, if it still means TensorFlow at this node."""
    for name, value in module.scope.names.items():
        if isinstance(value, Api) and value.name == "tf" and _is_visible(module, node, name):
            return name
    return None


def autotune(module: SourceModule, node: ast.AST) -> str | None:
    """Return `tf.data.AUTOTUNE` as this file can write it, or None if it imports no name for it."""
    for name in ("AUTOTUNE", "AUTO"):
        value = module.scope.names.get(name)
        known = isinstance(value, Api) and value.name.endswith("AUTOTUNE")
        if known and _is_visible(module, node, name):
            return name
    alias = tensorflow_name(module, node)
    return None if alias is None else f"{alias}.data.AUTOTUNE"


def _is_visible(module: SourceModule, node: ast.AST, name: str) -> bool:
    """Return whether a name of the file's top level is bound above this node, once or by imports, and nowhere else."""
    bound = bindings(module.tree, name)
    first = min((int(getattr(child, "lineno", 0)) for child in bound), default=0)
    same = len(bound) == 1 or all(isinstance(child, ast.alias) for child in bound)
    at_top = all(_is_at_top(module, child) for child in bound)
    return bool(bound) and same and at_top and first < int(getattr(node, "lineno", 0))


def _is_at_top(module: SourceModule, node: ast.AST) -> bool:
    return (
        module.find_enclosing(node, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef) is None
    )


def indentation(module: SourceModule, line: int) -> str:
    """Return the white space that a line starts with."""
    text = module.lines[line - 1]
    return text[: len(text) - len(text.lstrip())]
