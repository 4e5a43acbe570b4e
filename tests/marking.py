"""Which of `fast`, `tensorflow` and `slow` a test is.

`slow` is written down: a test that runs programs for tens of seconds. So is `tensorflow` where a program that a test
starts imports it. The rest is read from the source, before anything is imported: a test file that loads TensorFlow or
Keras, by itself or through what it imports, and a test or a fixture that does so or asks for it in its body. Every
other test is `fast`, and fails if TensorFlow is in the process after it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

_ROOT = Path(__file__).parent.parent
_HEAVY = {"tensorflow", "keras"}
# Who asks whether a module is there needs it, perhaps in a process of its own.
_ASKING = {"pytest.importorskip", "importlib.util.find_spec"}
_OURS = {"tests": _ROOT, "stoker": _ROOT / "src"}


def mark(item: pytest.Item) -> None:
    """Add what the source tells, and `fast` if that is nothing."""
    if file_needs_tensorflow(item.path) or any(_source_imports_it(function) for function in _functions(item)):
        item.add_marker(pytest.mark.tensorflow)
    if not any(item.iter_markers("tensorflow")) and not any(item.iter_markers("slow")):
        item.add_marker(pytest.mark.fast)


@cache
def file_needs_tensorflow(path: Path) -> bool:
    """Importing the file imports TensorFlow or Keras."""
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        for name in _loaded(file):
            if name.split(".")[0] in _HEAVY:
                return True
            waiting.extend(_files_of(name))
    return False


@cache
def _loaded(file: Path) -> list[str]:
    """The modules that importing a file imports."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return [name for node in _at_import(tree.body) for name in _imported(node)]


def _at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """What is run when a module is imported: all but the bodies of functions and what only type checkers see."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            continue
        inner = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.stmt)]
        yield from _at_import(inner)
        if not inner:
            yield from ast.walk(statement)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in _ASKING:
        return [str(ast.literal_eval(node.args[0]))]
    return []


@cache
def _files_of(name: str) -> list[Path]:
    """The files of ours that importing a module runs: its own and those of the packages around it."""
    parts = name.split(".")
    if parts[0] not in _OURS:
        return []
    places = [_OURS[parts[0]].joinpath(*parts[:length]) for length in range(1, len(parts) + 1)]
    paths = (path for place in places for path in (place / "__init__.py", place.with_suffix(".py")))
    return [path for path in paths if path.is_file()]


def _functions(item: pytest.Item) -> Iterator[object]:
    """The test and the fixtures it asks for."""
    assert isinstance(item, pytest.Function)
    yield item.function
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        yield from (definition.func for definition in definitions)


@cache
def _source_imports_it(function: object) -> bool:
    """Of ours, with TensorFlow or Keras imported in its body, by itself or through what it imports."""
    try:
        file = inspect.getsourcefile(function)  # type: ignore[arg-type]
    except TypeError:
        return False
    if file is None or not Path(file).is_relative_to(_ROOT / "tests"):
        return False
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))  # type: ignore[arg-type]
    names = [name for node in ast.walk(tree) for name in _imported(node)]
    return any(
        name.split(".")[0] in _HEAVY or any(map(file_needs_tensorflow, _files_of(name))) for name in names
    )
