"""From an op of a graph, or an eager op, to its owner: the line, the layer and the role."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable
from types import FrameType
from typing import NamedTuple

from stoker.doctor.attach.sites import USER, SiteKey, Sites
from stoker.doctor.memory.births import Births, Scopes
from stoker.doctor.memory.events import MemoryEvent
from stoker.doctor.memory.inventory import Inventory, path_of
from stoker.tf_internals.types import Operation

_GRADIENTS = re.compile(r"(^|/)(gradient_tape|gradients)(_\d+)?/")
# What TensorFlow's graph optimizer appends to a node's name.
_REWRITTEN = re.compile(r"(-\d+-Transpose\w+-LayoutOptimizer|_(?:const|recip)_\w+|/eightbit|_fused\w*)$")
_INPUTS = (
    "IteratorGetNext",
    "OptionalGetValue",
    "SameWorkerRecv",
    "_Recv",
    "_Arg",
    "_EagerConst",
    "MakeIterator",
)
# What TensorFlow computed while it optimised the graph; and the initial value of a variable.
_FOLDED = re.compile(r"__cf__\d+$")
_INITIAL = "/Initializer/"
_BACKPROP = "eager/backprop.py"
_LAYER_CALL = "keras/src/layers/layer.py"
_OPTIMIZERS = "/keras/src/optimizers/"
# The code that makes a variable, and the initial value that the variable keeps.
_VARIABLE_CODE = ("keras/src/backend/common/variables.py", "python/ops/resource_variable_ops.py")
_MAX_FRAMES = 80


class Owner(NamedTuple):
    """The owner of memory, and its role."""

    role: str
    layer: str = ""
    site: SiteKey | None = None


class Place(NamedTuple):
    """The place from which something is run: an op by itself, or a call of a compiled function."""

    owner: Owner
    is_call: bool


class EagerPlaces:
    """The places that run ops in a window, by number: the line, the layer and the role."""

    def __init__(self, sites: Sites) -> None:
        self._sites = sites
        self._numbers: dict[Place, int] = {}
        self.places: list[Place] = []

    def number(self, role: str = "", is_call: bool = False) -> int:
        """Return the number of the place on the caller's stack; `role` is the role if it is known."""
        place = Place(self._look(sys._getframe(2), role), is_call)
        found = self._numbers.get(place)
        if found is None:
            found = self._numbers[place] = len(self.places)
            self.places.append(place)
        return found

    def _look(self, frame: FrameType | None, role: str) -> Owner:
        site: SiteKey | None = None
        layer = ""
        for _ in range(_MAX_FRAMES):
            if frame is None:
                break
            code = frame.f_code
            file = code.co_filename
            if self._sites.kind_of(file) == USER:
                site = site or (file, frame.f_lineno, code.co_name)
            elif not layer and code.co_name == "__call__" and file.endswith(_LAYER_CALL):
                called = frame.f_locals.get("self")
                layer = path_of(called)
            elif site is None and role in ("", "weights"):
                role = _role_of_code(file, code.co_name) or role
            frame = frame.f_back
        return Owner(role or "activations", layer, site)


def _role_of_code(file: str, function: str) -> str:
    if file.endswith(_BACKPROP) and function == "gradient":
        return "gradients"
    if _OPTIMIZERS in file:
        return "optimizer"
    return "weights" if file.endswith(_VARIABLE_CODE) else ""


class Owners:
    """Finds the owners of the events of one window."""

    def __init__(
        self,
        inventory: Inventory,
        places: list[Place],
        sites: Sites,
        births: Births,
        scopes: Scopes,
        events: Iterable[MemoryEvent],
    ) -> None:
        self._inventory, self._places, self._sites = inventory, places, sites
        self._births, self._scopes = births, scopes
        self._ops: dict[str, Operation] = {}
        living = [graph for reference in inventory.graphs if (graph := reference()) is not None]
        # The largest graph first: a step, and then what the step calls.
        for graph in sorted(living, key=lambda graph: -len(graph.get_operations())):
            for op in graph.get_operations():
                self._ops.setdefault(op.name, op)
        # Ops that allocate results. An op with only scratch memory, such as Einsum, returns that as its result.
        self._with_output = {event.op for event in events if event.region == "output"}
        self._known: dict[tuple[str, str, int, int], Owner] = {}

    def owner_of(self, event: MemoryEvent) -> Owner:
        """Return the owner of an allocation's memory."""
        key = (event.op, event.region, event.mark, event.call)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._find(event)
        return found

    def owner_of_op(self, name: str) -> Owner:
        """Return the owner of an op, by the name of its node."""
        return self._find(MemoryEvent(0, True, 0, 0, 0, 0, 0.0, name))

    def _find(self, event: MemoryEvent) -> Owner:
        called = self._places[event.call].owner if event.call >= 0 else Owner("activations")
        is_scratch = event.region == "temp" and event.op in self._with_output
        if event.mark >= 0 and not self._places[event.mark].is_call:
            role = "input" if event.op.startswith(_INPUTS) else called.role
            return called._replace(role="workspace" if is_scratch else role)
        op = self._resolve(event.op)
        caller = self._caller_of(event.op, op)
        born = self._births.site_of(caller) if caller is not None else None
        site, is_gradient = self._line_of(op, born)
        is_gradient = is_gradient or _GRADIENTS.search(event.op) is not None
        is_optimizer = caller is not None and not hasattr(caller, "path")
        if is_scratch:
            role = "workspace"
        elif is_gradient and not is_optimizer:
            role = "gradients"
        elif _INITIAL in event.op:
            role = "optimizer" if is_optimizer else "weights"
        else:
            kind = op.type if op is not None else event.op
            role = "optimizer" if is_optimizer else _role_of_op(kind)
        if born is not None and (is_gradient or is_optimizer):
            site = born
        return Owner(role, "" if is_optimizer else path_of(caller), site or called.site)

    def _resolve(self, name: str) -> Operation | None:
        """Return the op of a node. TensorFlow puts names of inlined calls before the op's, and rewrites after it."""
        name = _REWRITTEN.sub("", name)
        while name:
            op = self._ops.get(name)
            if op is not None:
                return op
            _, _, name = name.partition("/")
        return None

    def _caller_of(self, name: str, op: Operation | None) -> object | None:
        """Return the layer or optimizer of an op. A gradient has that of the op it is the gradient of."""
        if op is None:
            return self._inventory.named.get(
                next((part for part in reversed(name.split("/")) if part in self._inventory.named), ""), _gone
            )()
        caller = self._scopes.caller_of(op.graph, op.name)
        if caller is None and _GRADIENTS.search(op.name):
            caller = self._scopes.caller_of(op.graph, _GRADIENTS.sub(r"\1", op.name))
        return caller

    def _line_of(self, op: Operation | None, born: SiteKey | None) -> tuple[SiteKey | None, bool]:
        """Return the line that made an op, and whether a tape did. An op of a library's layer has the layer's line."""
        is_gradient = False
        for frame in _innermost_first(op):
            if self._sites.kind_of(frame.filename) == USER:
                return (frame.filename, frame.lineno or 0, frame.name), is_gradient
            if frame.filename.endswith(_BACKPROP) and frame.name == "gradient":
                is_gradient = True
            if born is not None and frame.name == "__call__" and frame.filename.endswith(_LAYER_CALL):
                return born, is_gradient
        return born, is_gradient


def _role_of_op(kind: str) -> str:
    kind = kind.rsplit("/", 1)[-1]
    if kind == "Const" or _FOLDED.search(kind):
        return "constants"
    return "input" if kind.startswith(_INPUTS) else "activations"


def _gone() -> None:
    return None


def _innermost_first(op: Operation | None) -> Iterable[traceback.FrameSummary]:
    return reversed(list(op.traceback)) if op is not None else ()
