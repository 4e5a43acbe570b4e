"""Lists, dicts and deques that hold tensors, reached from the program's own names: globals, locals, attributes.

One walk visits a bounded number of objects, so it takes a few milliseconds, whatever the program holds. The program
continues meanwhile, and may change what the walk looks at. So containers are copied at once, and none of the program's
code is called.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import FrameType, FunctionType, ModuleType
from typing import Any

from stoker.doctor.attach.sites import USER, Sites
from stoker.tf_internals import eager

# Visits to what the running functions and their modules name, and visits to everything.
_MAX_VISITS_RUNNING, _MAX_VISITS = 3000, 4000
_MAX_DEPTH = 4
# How many values of a long container are looked into, from the end.
_LOOKED_INTO = 16
_FEW = 8
# Code that uses these names may keep the dict of its locals, and looking at a frame's locals would change that dict.
_ASKS_FOR_LOCALS = frozenset({"locals", "vars", "eval", "exec", "dir"})
_OPTIMIZED = 0x1
_CONTAINERS = (list, dict, deque)


@dataclass(frozen=True)
class TensorContainer:
    """A container of tensors, and its name in the program."""

    values: list[Any] | dict[Any, Any] | deque[Any]
    # The file whose code uses this name, and the function whose local it is; empty for globals and attributes.
    file: str
    function: str
    name: str


# A value, the file and the function that name it, and its name.
_Named = tuple[object, str, str, str]


def find_containers(sites: Sites, others: Iterable[object] = ()) -> list[TensorContainer]:
    """Return the containers of at least a few tensors, reached from the program's names and these other objects."""
    walk = _Walk(sites)
    walk.follow(_names_in_frames(sites), _MAX_VISITS_RUNNING)
    walk.follow([(one, "", "", "") for one in others], _MAX_VISITS_RUNNING)
    walk.follow(_globals(_own_modules(sites)), _MAX_VISITS)
    return walk.found


class _Walk:
    """Visits what names lead to, breadth first, and no object twice."""

    def __init__(self, sites: Sites) -> None:
        self.found: list[TensorContainer] = []
        self._sites = sites
        self._tensor = eager.tensor_type()
        self._seen: set[int] = set()

    def follow(self, names: Iterable[_Named], most: int) -> None:
        """Visit what these names lead to, until this many objects were visited in all."""
        waiting = deque((*one, 0) for one in names)
        while waiting and len(self._seen) < most:
            thing, file, function, name, depth = waiting.popleft()
            if id(thing) in self._seen:
                continue
            self._seen.add(id(thing))
            if isinstance(thing, _CONTAINERS):
                if len(thing) >= _FEW and holds_tensors(_last(thing), self._tensor):
                    self.found.append(TensorContainer(thing, file, function, name))
                    continue
                inner = [(value, file, function, name) for value in _some_values(thing)]
            else:
                inner = list(_attributes(thing, self._sites))
            if depth < _MAX_DEPTH:
                waiting.extend((*one, depth + 1) for one in inner if _may_hold(one[0]))


def holds_tensors(value: object, tensor: type) -> bool:
    """Return whether a value of a container is a tensor, or holds a few, such as a batch's outputs."""
    if isinstance(value, tensor):
        return True
    if isinstance(value, (tuple, list)):
        return any(isinstance(one, tensor) for one in value[:_FEW])
    return isinstance(value, dict) and any(isinstance(one, tensor) for one in _some_values(value))


def tensors_in(value: object, tensor: type) -> Iterator[Any]:
    """Yield the tensors in a container's value."""
    if isinstance(value, tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        yield from (one for one in list(value) if isinstance(one, tensor))
    elif isinstance(value, dict):
        yield from (one for one in list(value.values()) if isinstance(one, tensor))


def _names_in_frames(sites: Sites) -> Iterator[_Named]:
    """Yield the locals of the program's functions that run, and the globals of their modules."""
    running: dict[str, None] = {}
    # Inline, so that no variable keeps a frame.
    for frame in list(sys._current_frames().values()):
        yield from _locals(frame, sites, running)
    yield from _globals([module for name in running if (module := sys.modules.get(name)) is not None])


def _own_modules(sites: Sites) -> Iterator[ModuleType]:
    # TensorFlow has thousands of modules, so the first module of a package decides for the whole package.
    own: dict[str, bool] = {}
    for dotted, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType):
            continue
        # Reading an attribute would load a lazily loaded module, so the dict is read.
        file = module.__dict__.get("__file__")
        package = dotted.partition(".")[0]
        if isinstance(file, str) and package not in own:
            own[package] = sites.kind_of(file) == USER
        if isinstance(file, str) and own[package]:
            yield module


def _globals(modules: Iterable[ModuleType]) -> Iterator[_Named]:
    for module in modules:
        names = module.__dict__
        file = names.get("__file__")
        for name, value in list(names.items()):
            if isinstance(file, str) and not name.startswith("__") and _may_hold(value):
                yield value, file, "", name


def _locals(frame: FrameType | None, sites: Sites, modules: dict[str, None]) -> Iterator[_Named]:
    """Yield the locals of the program's functions on a stack, and note the modules that these functions are in."""
    while frame is not None:
        code = frame.f_code
        own = sites.kind_of(code.co_filename) == USER
        if own:
            modules[str(frame.f_globals.get("__name__"))] = None
        optimized = code.co_flags & _OPTIMIZED and frame.f_trace is None
        if own and optimized and not _ASKS_FOR_LOCALS & set(code.co_names):
            names = frame.f_locals
            for name, value in list(names.items()):
                if _may_hold(value):
                    yield value, code.co_filename, code.co_name, name
            if type(names) is dict:
                # Before Python 3.13, this is a copy that the frame keeps, with all tensors in it.
                names.clear()
        frame = frame.f_back


def _may_hold(value: object) -> bool:
    if isinstance(value, _CONTAINERS):
        return bool(value)
    if isinstance(value, FunctionType):
        return bool(value.__closure__)
    # Not `hasattr`, which may call the object's own `__getattr__`.
    return bool(type(value).__dictoffset__)


def _attributes(thing: object, sites: Sites) -> Iterator[_Named]:
    """Yield what an object of one of the program's classes holds, or what a function closes over."""
    if isinstance(thing, FunctionType):
        names = thing.__code__.co_freevars
        for name, cell in zip(names, thing.__closure__ or (), strict=False):
            try:
                yield cell.cell_contents, thing.__code__.co_filename, "", name
            except ValueError:
                continue
        return
    owner = thing if isinstance(thing, type) else type(thing)
    module = sys.modules.get(owner.__module__)
    where = getattr(module, "__file__", None)
    if isinstance(where, str) and sites.kind_of(where) == USER:
        for name, value in list(vars(thing).items()):
            yield value, where, "", name
        if owner is not thing:
            yield owner, where, "", ""


def _last(values: list[Any] | dict[Any, Any] | deque[Any]) -> object:
    return (_some_values(values) or [None])[-1]


def _some_values(values: list[Any] | dict[Any, Any] | deque[Any]) -> list[Any]:
    return copy_from(values, max(0, len(values) - _LOOKED_INTO))


def copy_from(values: list[Any] | dict[Any, Any] | deque[Any], start: int) -> list[Any]:
    """Return the values of a container from this index on."""
    if isinstance(values, list):
        return list.__getitem__(values, slice(start, None))
    return list(dict.values(values) if isinstance(values, dict) else values)[start:]
