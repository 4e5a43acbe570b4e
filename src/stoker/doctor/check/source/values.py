"""The abstract values of expressions: tensor, variable, ndarray, Python value, dataset, model ...

The analysis is light on purpose. A value says what a reader of the code would know without running it;
`UNKNOWN` says that such a reader would not know either.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stoker.doctor.check.source.module import ClassInfo, SourceModule


@dataclass(frozen=True, slots=True)
class Value:
    """Any value. Only `UNKNOWN` is of exactly this class."""


UNKNOWN = Value()


@dataclass(frozen=True, slots=True)
class Api(Value):
    """A library's name in its canonical spelling: `tf.data.Dataset`, `keras.Model`, `np.mean`."""

    name: str


@dataclass(frozen=True, slots=True)
class Tensor(Value):
    """An eager or graph tensor. With `host` it has never left the CPU (a dataset's element, a shape)."""

    host: bool = False
    variable: bool = False
    dtype: str = ""
    # Whether its shape changes from batch to batch: it comes from `padded_batch`, or is ragged.
    ragged: bool = False
    # The source of raw 0..255 pixels; arithmetic clears it.
    pixels: str = ""


@dataclass(frozen=True, slots=True)
class Array(Value):
    """A NumPy array."""

    dtype: str = ""
    # The source of raw 0..255 pixels, e.g. `mnist`; arithmetic clears it.
    pixels: str = ""
    # What is known of class labels: `integer`, `one-hot`.
    labels: str = ""
    # Its bytes, if the code shows them; -1 for a memory map, which is meant to be large.
    size: int = 0


@dataclass(frozen=True, slots=True)
class Py(Value):
    """A plain Python value: `int`, `float`, `str`, `bool`, `none`, or `object`."""

    type: str = "object"
    const: Any = None
    # Whether it changes from one iteration of the loop to the next.
    varies: bool = False
    # Whether it is a truth value that is rarely true, such as `step % 100 == 0`.
    rare: bool = False
    # Whether it derives from the number of replicas of a strategy.
    replicas: bool = False
    # The default, for a command-line option.
    default: Any = None

    @property
    def usual(self) -> Any:
        """The literal value or the default; None if neither is known."""
        return self.const if self.const is not None else self.default


@dataclass(frozen=True, slots=True)
class Seq(Value):
    """A list, tuple, set, dict or generator, with known items or one value that describes all elements."""

    kind: str = "list"
    element: Value = UNKNOWN
    items: tuple[Value, ...] | None = None
    keys: tuple[str, ...] | None = None
    # The number of elements, if the code shows it.
    length: int | None = None
    varies: bool = False
    # The value walked over, inside `enumerate`, `zip`, `tqdm` or `iter`.
    source: Value | None = None
    # The other values that `zip` walks over.
    beside: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Symbolic(Value):
    """A Keras tensor of a functional model, and the layer that it comes from."""

    layer: Value = UNKNOWN
    # Whether a rescaling or normalising layer comes before it.
    scaled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ChainStage:
    """One transformation of a pipeline, as called."""

    name: str
    node: ast.Call
    module: SourceModule
    # The canonical names of a mapped function's calls; `?` stands for a call that could not be followed.
    effects: frozenset[str] = frozenset()
    parallel: bool = False
    argument: Value = UNKNOWN
    keywords: frozenset[str] = frozenset()
    function: Value = UNKNOWN


@dataclass(frozen=True, slots=True, eq=False)
class Dataset(Value):
    """A tf.data pipeline: its source, its stages so far and what an element is."""

    source: str = ""
    stages: tuple[ChainStage, ...] = ()
    element: Value = UNKNOWN
    # Whether the source prefetches by itself, e.g. `image_dataset_from_directory`.
    prefetched: bool = False
    distributed: bool = False
    # Whether it is made inside `interleave` or `flat_map`, so that the outer pipeline drives it.
    inner: bool = False
    # The pipelines that `zip` or the like combined into it.
    parts: tuple[Dataset, ...] = ()

    def with_stage(self, stage: ChainStage, element: Value | None = None) -> Dataset:
        """Return the pipeline with one more transformation."""
        return replace(
            self, stages=(*self.stages, stage), element=self.element if element is None else element
        )


@dataclass(frozen=True, slots=True, eq=False)
class Thing(Value):
    """An object of TensorFlow, Keras or another library: model, layer, optimizer, metric, loss, tape ..."""

    type: str
    # The canonical name of the class or function that made it.
    name: str = ""
    node: ast.AST | None = None
    module: SourceModule | None = None
    # What the rules need to know about it: activation, units, layers, from_logits ...
    about: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Compiled:
    """The way a function was compiled: the decorator or call, and whether it fixes the input's signature."""

    node: ast.AST
    module: SourceModule
    signature: bool = False
    relaxed: bool = False


@dataclass(frozen=True, slots=True)
class Func(Value):
    """A function or lambda of the program, with the scope it closes over and the object it is bound to."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    module: SourceModule
    scope: Scope
    bound: Value | None = None
    compiled: Compiled | None = None
    # Arguments fixed by `functools.partial`.
    partial: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Method(Value):
    """A method of a library object that is used as a value: `update = metric.update_state`."""

    receiver: Value
    name: str
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Class(Value):
    """One of the program's own classes."""

    info: ClassInfo


@dataclass(frozen=True, slots=True)
class Instance(Value):
    """An object of one of the program's classes. The values of its attributes are kept in the class."""

    info: ClassInfo


@dataclass(frozen=True, slots=True, eq=False)
class File(Value):
    """A module of the same project."""

    module: SourceModule


@dataclass(frozen=True, slots=True, eq=False)
class Lazy(Value):
    """A name that is imported from a file of the project, but not used yet."""

    importer: SourceModule
    module: SourceModule
    dotted: str
    level: int
    name: str


class Scope:
    """The names of a function or module, and the scope around it."""

    __slots__ = ("names", "outer")

    def __init__(self, outer: Scope | None = None, names: dict[str, Value] | None = None) -> None:
        self.names: dict[str, Value] = {} if names is None else names
        self.outer = outer

    def find(self, name: str) -> Value | None:
        """Return the value of a name in this scope or one around it."""
        scope: Scope | None = self
        while scope is not None:
            value = scope.names.get(name)
            if value is not None:
                return value
            scope = scope.outer
        return None

    def settle(self, name: str, value: Value) -> None:
        """Set the value of a lazily imported name in the scope that holds it."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                scope.names[name] = value
                return
            scope = scope.outer


NONE = Py("none")


def is_tensor(value: Value) -> bool:
    """Return whether reading this value waits for the device."""
    return isinstance(value, Tensor) and not value.host


def holds_arrays(value: Value) -> bool:
    """Return whether a value is an ndarray or a list of ndarrays: both are copied when turned into a tensor."""
    if isinstance(value, Seq) and value.kind in ("list", "tuple"):
        return any(holds_arrays(item) for item in value.items or (value.element,))
    return isinstance(value, Array)


def element_of(value: Value) -> Value:
    """Return the element that iterating over a value gives."""
    if isinstance(value, Seq):
        return join_all(value.items) if value.items else value.element
    if isinstance(value, Dataset):
        return value.element
    if isinstance(value, Tensor):
        return replace(value, variable=False)
    if isinstance(value, Array):
        return Array(dtype=value.dtype, pixels=value.pixels)
    return UNKNOWN


def join_all(values: Iterable[Value]) -> Value:
    """Return one value that describes all of these."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return UNKNOWN if result is None else result


def join(a: Value, b: Value) -> Value:
    """Return the value of a name after two branches, one of which leaves it as `a` and the other as `b`."""
    if a is b or a == b:
        return a
    if isinstance(a, Dataset) and isinstance(b, Dataset):
        return a if len(a.stages) >= len(b.stages) else b
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Lazy):
            return other
        if one == NONE or one is UNKNOWN:
            return other if one == NONE else _join_unknown(other)
        # A running total starts as 0 and becomes a tensor.
        if isinstance(one, Tensor) and isinstance(other, Py):
            return one
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return Tensor(host=a.host and b.host, variable=a.variable and b.variable, ragged=a.ragged or b.ragged)
    if isinstance(a, Py) and isinstance(b, Py):
        type_ = a.type if a.type == b.type else "object"
        return Py(type_, varies=a.varies or b.varies, rare=a.rare and b.rare)
    if isinstance(a, Array) and isinstance(b, Array):
        return Array(dtype=a.dtype if a.dtype == b.dtype else "")
    if isinstance(a, Seq) and isinstance(b, Seq):
        return _join_sequences(a, b)
    if isinstance(a, Thing) and isinstance(b, Thing):
        return a if a.type == b.type else UNKNOWN
    return a if type(a) is type(b) and isinstance(a, (Func, Instance, Symbolic)) else UNKNOWN


def _join_unknown(other: Value) -> Value:
    # A value of these types on one path is enough for a finding; others must be known on both paths.
    keep = (Tensor, Dataset, Thing, Func, Instance)
    return other if isinstance(other, keep) else UNKNOWN


def _join_sequences(a: Seq, b: Seq) -> Value:
    if a.items is not None and b.items is not None and len(a.items) == len(b.items) and a.keys == b.keys:
        items = tuple(join(x, y) for x, y in zip(a.items, b.items, strict=True))
        return Seq(a.kind, items=items, keys=a.keys, varies=a.varies or b.varies)
    # An empty list says nothing about its elements.
    if not a.items and a.items is not None:
        return b
    if not b.items and b.items is not None:
        return a
    return Seq(a.kind, element=join(element_of(a), element_of(b)), varies=True)
