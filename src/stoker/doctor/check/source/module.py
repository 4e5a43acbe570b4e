"""One parsed file: its tree, what it imports, its functions and classes."""

from __future__ import annotations

import ast
import functools
import re
import symtable
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from stoker.doctor.check.source.names import TENSOR_ROOTS
from stoker.doctor.check.source.values import Scope, Value
from stoker.errors import StokerError

if TYPE_CHECKING:
    from stoker.doctor.check.source.notebook import Cell

_INTERNALS = tuple(
    f"tensorflow.{part}." for part in ("python", "core", "compiler", "tools", "tsl", "dtensor", "security")
)
_IMPORTS = re.compile(r"^[ \t]*(?:from[ \t]+(\w[\w.]*)[ \t]+import|import[ \t]+([\w., \t]+))", re.MULTILINE)
# Comments and strings.
_NOT_CODE = re.compile(
    r"#[^\n]*|\"\"\"[^\"\\]*(?:(?:\\.|\"{1,2}(?!\"))[^\"\\]*)*\"\"\"|\'\'\'[^\'\\]*(?:(?:\\.|\'{1,2}(?!\'))[^\'\\]*)*\'\'\'"
    r"|\"[^\"\\\n]*(?:\\.[^\"\\\n]*)*\"|\'[^\'\\\n]*(?:\\.[^\'\\\n]*)*\'",
    re.DOTALL,
)
_GRAPH_MODE = re.compile(
    r"compat\.v1|\btf\.(Session|placeholder|InteractiveSession)\(|disable_(v2_behavior|eager_execution)|tf\.contrib"
)
_EAGER_MODE = re.compile(r"GradientTape|\.numpy\(\)|enable_(eager_execution|v2_behavior)|@tf\.function")
T = TypeVar("T")
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


class SourceError(StokerError):
    """A file cannot be read or parsed. The message is one line that says where."""


@dataclass(eq=False)
class ClassInfo:
    """One of the program's classes. The values of an attribute are joined over all objects and methods."""

    node: ast.ClassDef
    module: SourceModule
    scope: Scope
    bases: tuple[Value, ...] = ()
    # Methods and class attributes.
    members: dict[str, Value] = field(default_factory=dict)
    attributes: dict[str, Value] = field(default_factory=dict)
    initialised: bool = False


@dataclass(eq=False)
class SourceModule:
    """One file, parsed when its tree is first used. `scope` is filled once its top level has been interpreted."""

    path: str
    text: str
    imports: frozenset[str]
    scope: Scope = field(default_factory=Scope)
    interpreted: bool = False
    star_imports: list[str] = field(default_factory=list)
    # A notebook's cells; None for a plain file.
    cells: tuple[Cell, ...] | None = None
    # How many imports away from the file being checked.
    distance: int = 0
    # Whether an import of another file of the project brings TensorFlow along.
    lent_tensors: bool = False
    # The tree, once the text is parsed. All modules of the same text share this list.
    _parsed: list[ast.Module] = field(default_factory=list)
    _lines: list[str] | None = None
    _parents: dict[ast.AST, ast.AST] | None = None

    def copy_fresh(self) -> SourceModule:
        """Return a copy of the file with nothing interpreted yet."""
        return SourceModule(self.path, self.text, self.imports, cells=self.cells, _parsed=self._parsed)

    def validate(self) -> None:
        """Check that the text is valid Python. This takes less time than building a tree.

        Raises:
            SourceError: the text is not valid Python.
        """
        if not self._parsed:
            _parse(self.path, lambda: symtable.symtable(self.text, self.path, "exec"))

    @property
    def tree(self) -> ast.Module:
        """The syntax tree.

        Raises:
            SourceError: the text is not valid Python.
        """
        if not self._parsed:
            self._parsed.append(_parse(self.path, lambda: ast.parse(self.text)))
        return self._parsed[0]

    @property
    def lines(self) -> list[str]:
        """The text's lines, as the parser counts them."""
        if self._lines is None:
            self._lines = split_lines(self.text)
        return self._lines

    @property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Each node's parent; made on first use, since only fixes and a few rules need it."""
        if self._parents is None:
            self._parents = {
                child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
            }
        return self._parents

    @property
    def uses_tensors(self) -> bool:
        """Whether the file imports TensorFlow or Keras, perhaps through `from helper import *`."""
        return self.lent_tensors or not TENSOR_ROOTS.isdisjoint(self.imports)

    @functools.cached_property
    def builds_graphs(self) -> bool:
        """Whether the file is written for TensorFlow 1: its code builds a graph that a session runs."""
        return bool(_GRAPH_MODE.search(self.text)) and not _EAGER_MODE.search(self.text)

    def imports_any(self, *roots: str) -> bool:
        """Return whether one of these top-level packages is imported anywhere in the file."""
        return not self.imports.isdisjoint(roots)

    def find_enclosing(self, node: ast.AST, *types: type[ast.AST]) -> ast.AST | None:
        """Return the nearest enclosing node of one of these types."""
        parent = self.parents.get(node)
        while parent is not None and not isinstance(parent, types):
            parent = self.parents.get(parent)
        return parent

    def segment(self, node: ast.AST) -> str:
        """Return the source text of a node."""
        return ast.get_source_segment(self.text, node) or ""


def split_lines(text: str) -> list[str]:
    """Split a text into lines as Python's parser does: a form feed, for example, does not end a line."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def parse(path: str, text: str, cells: tuple[Cell, ...] | None = None) -> SourceModule:
    """Parse one file's text.

    Raises:
        SourceError: the text is not valid Python.
    """
    module = make_module(path, text, cells)
    assert module.tree
    return module


def make_module(path: str, text: str, cells: tuple[Cell, ...] | None = None) -> SourceModule:
    """Make a module that is parsed only when its tree is used: most files of a project do not use TensorFlow."""
    return SourceModule(path, text, _imported_roots(text), cells=cells)


def _parse(path: str, read: Callable[[], T]) -> T:
    try:
        with warnings.catch_warnings():
            # Do not show warnings about the checked program, such as for invalid escapes.
            warnings.simplefilter("ignore")
            return read()
    except SyntaxError as error:
        raise SourceError(
            f"{path}:{error.lineno or 1}:{error.offset or 1}: does not parse: {error.msg}"
        ) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SourceError(f"{path}:1:1: does not parse: {error or type(error).__name__}") from error


def _imported_roots(text: str) -> frozenset[str]:
    """Return the top-level packages that a file imports anywhere. Search the text: parsing takes far longer."""
    found = frozenset(_roots(text))
    if TENSOR_ROOTS.isdisjoint(found):
        return found
    # Ignore imports in strings and comments, such as examples in docstrings.
    return frozenset(_roots(_NOT_CODE.sub("", text)))


def _roots(text: str) -> Iterator[str]:
    for source, names in _IMPORTS.findall(text):
        for name in (source,) if source else names.split(","):
            words = name.split()
            if words:
                yield _root(words[0])


def _root(dotted: str) -> str:
    # Files of TensorFlow and Keras themselves import internals, whose names mean nothing to the analysis.
    if f"{dotted}.".startswith(_INTERNALS) and not dotted.startswith("tensorflow.python.keras"):
        return "tensorflow.python"
    if dotted.startswith("keras.src"):
        return "keras.src"
    return dotted.split(".", 1)[0]
