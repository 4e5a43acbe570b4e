"""An inventory of the devices before a window begins: variables, eager tensors, constants of graphs.

One pass over the objects that Python's garbage collector knows finds them all, whatever made them. A pass takes tens of
milliseconds, so each window has only one.
"""

from __future__ import annotations

import gc
import itertools
import linecache
import re
import sys
import weakref
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.doctor.attach.sites import SiteKey
from stoker.doctor.memory.births import Births
from stoker.tf_internals import eager, graphs, keras_layers, keras_optimizers
from stoker.tf_internals.types import Graph, Layer, Metric, Optimizer, Tensor, Variable

_DEVICE = re.compile(r"device:(GPU:\d+)$")
# Allocators hand out memory in multiples of this size.
PIECE_BYTES = 256
_SMALL_BYTES = 4096
_APPENDED = re.compile(r"\b(\w+)(?:\.(?:append|extend)\(|\s*\+=)")
_ASSIGNED = re.compile(r"(\w+)\s*(?::[^=]+)?=[^=]")


@dataclass(frozen=True)
class Holding:
    """Something that holds memory of a device."""

    device: str
    role: str
    bytes: int
    shape: str
    dtype: str
    op: str
    layer: str = ""
    site: SiteKey | None = None


@dataclass
class Inventory:
    """Everything that was alive, and the objects that show who owns later allocations."""

    variables: list[Holding] = field(default_factory=list)
    constants: list[Holding] = field(default_factory=list)
    # Tensors are checked again when the window is over: those that are gone do not count.
    tensors: list[tuple[weakref.ref[Tensor], Holding]] = field(default_factory=list)
    living: list[Holding] | None = None
    graphs: list[weakref.ref[Graph]] = field(default_factory=list)
    # Layers and optimizers by name.
    named: dict[str, weakref.ref[Any]] = field(default_factory=dict)

    def end_window(self) -> None:
        """Note which tensors are still alive. The program goes on while the window is read, and may end."""
        self.living = [holding for tensor, holding in self.tensors if tensor() is not None]

    def holdings(self, device: str) -> list[Holding]:
        """Return what lived on a device to the end of the window, or until now; the most certain first."""
        if self.living is None:
            self.end_window()
        living = self.living or []
        return [held for held in (*self.variables, *living, *self.constants) if held.device == device]


def refresh_names(inventory: Inventory, has_keras: bool) -> None:
    """Add the graphs, layers and optimizers made since."""
    found = _find(has_keras)
    inventory.graphs = [weakref.ref(graph) for graph in found.graphs]
    inventory.named |= {str(one.name): weakref.ref(one) for one in (*found.layers, *found.optimizers)}


@dataclass
class _Found:
    """The objects of interest, sorted by kind."""

    tensors: list[Tensor] = field(default_factory=list)
    variables: list[Variable] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    layers: list[Layer] = field(default_factory=list)
    optimizers: list[Optimizer] = field(default_factory=list)
    metrics: list[Metric] = field(default_factory=list)


def take_inventory(births: Births, has_keras: bool) -> Inventory:
    """Take an inventory of everything that is alive."""
    found = _find(has_keras)
    inventory = Inventory()
    inventory.named = {str(one.name): weakref.ref(one) for one in (*found.layers, *found.optimizers)}
    owners = dict(_owners_of_variables(found, births))
    for variable in found.variables:
        role, layer_name, site = owners.get(id(variable), ("weights", "", None))
        holding = _hold(variable, variable.device, role, str(variable.name))
        if holding is not None:
            born = site or births.site_of(variable)
            inventory.variables.append(replace(holding, layer=layer_name, site=born))
    inventory.graphs = [weakref.ref(graph) for graph in found.graphs]
    for graph in found.graphs:
        inventory.constants.extend(_constants(graph))
    captured = _captured(found.graphs)
    named, appended = _lines_of_globals()
    for tensor in found.tensors:
        site = births.site_of(tensor) or named.get(id(tensor))
        role = "constants" if id(tensor) in captured else "input" if site is not None else "other"
        site = site or appended.get(id(tensor))
        holding = _hold(tensor, tensor.backing_device, role, "tensor")
        if holding is not None:
            inventory.tensors.append((weakref.ref(tensor), replace(holding, site=site)))
    return inventory


def path_of(layer: Layer | None) -> str:
    """Return the path of a layer through the models that contain it; "" for None."""
    return "" if layer is None else str(getattr(layer, "path", None) or layer.name)


def _constants(graph: Graph) -> Iterator[Holding]:
    """Yield the large constants of a graph. Integers stay on the host."""
    for op in graph.get_operations():
        if op.type == "Const" and op.outputs[0].dtype.is_floating and size_of(op.outputs[0]) >= _SMALL_BYTES:
            made = _hold(op.outputs[0], op.device or "/device:GPU:0", "constants", op.name)
            if made is not None:
                yield made


def _find(has_keras: bool) -> _Found:
    found = _Found()
    # Each type, where its objects go, and attributes that an object has once it is made: another thread may be making
    # some of them now.
    wanted: list[tuple[type, list[Any], tuple[str, ...]]] = [
        (eager.tensor_type(), found.tensors, ()),
        (eager.variable_type(), found.variables, ("name",)),
        (graphs.graph_type(), found.graphs, ()),
    ]
    of_keras = ("name", "variables")
    if has_keras:
        import keras

        wanted += [
            (keras.Layer, found.layers, of_keras),
            (keras_optimizers.optimizer_type(), found.optimizers, of_keras),
            (keras.Metric, found.metrics, of_keras),
        ]
    lists: dict[type, tuple[list[Any], tuple[str, ...]]] = {}
    for base, target, made in wanted:
        for kind in _with_subclasses(base):
            lists.setdefault(kind, (target, made))
    for thing in _living(lists):
        target, made = lists[type(thing)]
        if all(hasattr(thing, attribute) for attribute in made):
            target.append(thing)
    return found


def _living(kinds: Collection[type]) -> list[object]:
    """Return all objects of these types that the garbage collector knows.

    Python cannot finish a tuple that somebody else holds, and among all objects are tuples that another thread is
    making. So no other thread may run before the others are let go again: all of this is one call, without a line of
    Python in it, be it a metaclass's `__hash__` or a callback of the collector.
    """
    known = frozenset(map(id, kinds))
    collects = gc.isenabled()
    gc.disable()
    try:
        # Without an end of its own, since `compress` leaves the other list alone once the first one has ended.
        everything = itertools.chain(_everything(), itertools.repeat(None))
        return list(
            itertools.compress(everything, map(known.__contains__, map(id, map(type, _everything()))))
        )
    finally:
        if collects:
            gc.enable()


def _everything() -> Iterator[object]:
    """Yield all objects, generation by generation, with no line of Python in between.

    If two of these are read in step, their own lists come last: new objects are in generation 0.
    """
    return itertools.chain.from_iterable(itertools.starmap(gc.get_objects, [(2,), (1,), (0,)]))


def _with_subclasses(base: type) -> Iterator[type]:
    yield base
    kinds: list[type] = type.__subclasses__(base)
    for kind in kinds:
        yield from _with_subclasses(kind)


def _owners_of_variables(
    found: _Found, births: Births
) -> Iterator[tuple[int, tuple[str, str, SiteKey | None]]]:
    """Yield the role, layer and line of TensorFlow's variables that Keras made, by their ids."""
    makers = (
        *(("weights", path_of(one), one, keras_layers.own_variables(one)) for one in found.layers),
        *(("optimizer", "", one, one.variables) for one in found.optimizers),
        *(("other", "", one, one.variables) for one in found.metrics),
    )
    for role, layer, maker, variables in makers:
        for variable in variables:
            for one in keras_layers.tensorflow_variables(variable):
                yield id(one), (role, layer, births.site_of(maker))


def _lines_of_globals() -> tuple[dict[int, SiteKey], dict[int, SiteKey]]:
    """Return the lines that first set the program's global variables, by the ids of their values.

    Also return the lines that first append to global lists, by the ids of the lists' values.
    """
    program = sys.modules.get("__main__")
    file = getattr(program, "__file__", None)
    if program is None or file is None:
        return {}, {}
    lines: dict[str, int] = {}
    appends: dict[str, int] = {}
    for number, text in enumerate(linecache.getlines(file), 1):
        assigned = _ASSIGNED.match(text)
        if assigned:
            lines.setdefault(assigned[1], number)
        for name in _APPENDED.findall(text):
            appends.setdefault(name, number)
    named: dict[int, SiteKey] = {}
    appended: dict[int, SiteKey] = {}
    for name, thing in list(vars(program).items()):
        if isinstance(thing, list) and name in appends:
            appended.update((id(one), (file, appends[name], "<module>")) for one in list(thing))
        elif name in lines:
            named[id(thing)] = (file, lines[name], "<module>")
    return named, appended


def _captured(found: Iterable[Graph]) -> set[int]:
    """Return the ids of the tensors that functions have captured."""
    return {id(outside) for graph in found for outside, _ in graph.captures}


def _hold(thing: Tensor | Variable, device: str | None, role: str, op: str) -> Holding | None:
    """Return what a tensor or variable holds; None if it is not on a device, or has no plain values."""
    placed = _DEVICE.search(device or "")
    size = size_of(thing)
    if placed is None or not size:
        return None
    pieces = -(-size // PIECE_BYTES) * PIECE_BYTES
    shape = str(thing.shape.as_list()).replace(" ", "")
    return Holding(f"/{placed[1]}", role, pieces, shape, thing.dtype.name, op)


def size_of(thing: Tensor | Variable) -> int:
    """Return the bytes of its values; 0 for resources, text, and values without a fixed shape."""
    if not (
        thing.dtype.is_floating or thing.dtype.is_integer or thing.dtype.is_complex or thing.dtype.is_bool
    ):
        return 0
    shape = thing.shape
    return int(thing.dtype.size) * int(shape.num_elements() or 0) if shape.is_fully_defined() else 0
