"""No private name of TensorFlow or Keras outside of `stoker.tf_internals`, and each one in there has a test.

Ruff forbids the imports (TID251 in pyproject.toml). It cannot see attributes, nor modules that are named in strings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support import ROOT, SRC

INTERNALS = SRC / "tf_internals"
# Private by their names, but neither TensorFlow's nor Keras'.
OTHERS = {
    *("_asdict", "_fields", "_field_defaults", "_make", "_replace"),  # public, of named tuples
    *("_getframe", "_current_frames", "_exit"),  # public, of sys and os
    "_SubParsersAction",  # argparse has no other name for the type
    "_args_from_interpreter_flags",  # how multiprocessing hands on Python's flags
    "_Hash",  # the type of hashlib's objects has no public name
    *("_predictors", "_baseline_prediction"),  # scikit-learn gives its trees by no other name
    "_setupstate",  # pytest tells nowhere else which fixtures are up
}
# Files that name private modules because people's programs and files do.
READERS = {"doctor/check/source/module.py", "doctor/check/source/names.py"}
_PRIVATE_MODULE = re.compile(r"tensorflow\.(python|core|tsl|compiler)\b|keras\.src\b|__internal__")
_ASKING = {"getattr", "hasattr", "setattr", "delattr"}
FILES = [path for path in sorted(SRC.rglob("*.py")) if INTERNALS not in path.parents]


def _is_private(name: str) -> bool:
    return name.startswith("_") and name != "_" and not (name.startswith("__") and name.endswith("__"))


def _is_own(owner: ast.expr) -> bool:
    return isinstance(owner, ast.Name) and owner.id in ("self", "cls")


def _defined(tree: ast.AST) -> set[str]:
    """Names that a module gives to functions, classes, variables and attributes."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_own(node.value):
            found.add(node.attr)
    return found


def _used(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Private attributes that a module reads or sets, and where. Those of `self` may be inherited from ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            owner = node.value
            by_super = isinstance(owner, ast.Call) and getattr(owner.func, "id", "") == "super"
            if not by_super and not _is_own(owner):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", ""))
            named = node.args[1] if called in (*_ASKING, "replace", "add") and len(node.args) > 1 else None
            if isinstance(named, ast.Constant) and isinstance(named.value, str) and _is_private(named.value):
                yield node.lineno, named.value


@cache
def _sources() -> list[tuple[str, ast.AST, set[str]]]:
    """Each file's name and tree, and what is defined in it."""
    trees = [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in FILES]
    return [(path.relative_to(SRC).as_posix(), tree, _defined(tree)) for path, tree in trees]


@pytest.mark.slow
def test_private_attributes_are_used_only_where_they_are_defined() -> None:
    found = [
        f"{name}:{line}: {attribute}"
        for name, tree, defined in _sources()
        for line, attribute in _used(tree)
        if attribute not in OTHERS and attribute not in defined
    ]
    assert found == []


def test_private_attributes_of_self_are_ours() -> None:
    """A subclass of a class of TensorFlow's inherits names that nobody here defines."""
    ours = OTHERS.union(*(defined for _, _, defined in _sources()))
    found = [
        f"{name}:{node.lineno}: {node.attr}"
        for name, tree, _ in _sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in ours
        if _is_own(node.value)
    ]
    assert found == []


def test_private_modules_are_named_nowhere_else() -> None:
    found = [
        f"{name}:{node.lineno}: {node.value}"
        for name, tree, _ in _sources()
        if name not in READERS
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if "\n" not in node.value and _PRIVATE_MODULE.search(node.value)
    ]
    assert found == []


@pytest.mark.parametrize("module", sorted(INTERNALS.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_every_name_has_a_test(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    public = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    public |= {
        alias.asname
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname is not None and alias.asname == alias.name
    }
    tests = (ROOT / "tests" / "tf_internals" / f"test_{module.stem}.py").read_text(encoding="utf-8")
    assert {name for name in public if not name.startswith("_")} - set(re.findall(r"\w+", tests)) == set()
