"""Command-line options: the default of `args.debug`, as the parser's code gives it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.values import NONE, UNKNOWN, Py, Seq, Thing, Value

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_FLAGS = {"store_true": False, "store_false": True}


def method(m: Machine, thing: Thing, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Call a method of a parser or of one of its groups."""
    if name == "add_argument":
        _add(thing, arguments)
        return UNKNOWN
    if name in ("add_argument_group", "add_mutually_exclusive_group"):
        return thing
    if name == "parse_args":
        return Thing("options", about=thing.about)
    if name == "parse_known_args":
        return Seq("tuple", items=(Thing("options", about=thing.about), Seq("list")))
    return UNKNOWN


def _add(thing: Thing, arguments: Arguments) -> None:
    given = [value.const for value in arguments.by_position if isinstance(value, Py)]
    names = [name for name in given if isinstance(name, str)]
    chosen = arguments.const(99, "dest") or next((n for n in names if n.startswith("--")), None)
    if chosen is None and names:
        chosen = names[0]
    if isinstance(chosen, str):
        thing.about[chosen.lstrip("-").replace("-", "_")] = _option(arguments)


def _option(arguments: Arguments) -> Value:
    action = arguments.const(99, "action")
    default = arguments.get(99, "default")
    if default is None and isinstance(action, str) and action in _FLAGS:
        return Py("bool", default=_FLAGS[action])
    if default is None or default == NONE:
        return UNKNOWN
    # The value itself stays unknown: a loop over a count that is 1 by default need not be short.
    return Py(default.type, default=default.const) if isinstance(default, Py) else UNKNOWN


def attribute(thing: Thing, name: str) -> Value:
    """Evaluate `args.debug`."""
    held = thing.about.get(name)
    return held if isinstance(held, Value) else UNKNOWN
