"""Run import statements: library names become canonical, project files are followed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stoker.doctor.check.source.frames import CallFrame
from stoker.doctor.check.source.module import SourceError, SourceModule
from stoker.doctor.check.source.names import find_canonical_name
from stoker.doctor.check.source.values import UNKNOWN, Api, File, Lazy, Value

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine


def run_import(m: Machine, node: ast.Import) -> None:
    """Run `import a.b as c`."""
    names = m.frame.scope.names
    for alias in node.names:
        module = m.project.find(m.frame.module, alias.name)
        if alias.asname:
            names[alias.asname] = File(module) if module else Api(find_canonical_name(alias.name))
            continue
        root = alias.name.split(".", 1)[0]
        if module is not None and "." not in alias.name:
            names[root] = File(module)
        elif not isinstance(names.get(root), Api):
            names[root] = Api(find_canonical_name(root))


def run_import_from(m: Machine, node: ast.ImportFrom) -> None:
    """Run `from a import b as c` and `from a import *`."""
    dotted = node.module or ""
    module = m.project.find(m.frame.module, dotted, node.level)
    for alias in node.names:
        if alias.name == "*":
            _star(m, dotted, module, node.level)
            continue
        m.frame.scope.names[alias.asname or alias.name] = _import_name(
            m, dotted, node.level, module, alias.name
        )


def _import_name(m: Machine, dotted: str, level: int, module: SourceModule | None, name: str) -> Value:
    if module is not None:
        # Read the other file only when one of its names is needed; most never are.
        return Lazy(m.frame.module, module, dotted, level, name)
    inner = m.project.find(m.frame.module, f"{dotted}.{name}" if dotted else name, level)
    if inner is not None:
        return File(inner)
    return UNKNOWN if level else Api(find_canonical_name(f"{dotted}.{name}"))


def settle(m: Machine, lazy: Lazy) -> Value:
    """Return the value of a lazily imported name: a member of the file, or a file of its package."""
    found = member(m, lazy.module, lazy.name)
    if found is not None:
        return found
    dotted = f"{lazy.dotted}.{lazy.name}" if lazy.dotted else lazy.name
    inner = m.project.find(lazy.importer, dotted, lazy.level)
    return UNKNOWN if inner is None else File(inner)


def _star(m: Machine, dotted: str, module: SourceModule | None, level: int) -> None:
    if module is not None:
        interpret(m, module)
        public = {k: v for k, v in module.scope.names.items() if not k.startswith("_")}
        m.frame.scope.names.update(public)
        m.frame.module.star_imports += module.star_imports
    elif not level:
        m.frame.module.star_imports.append(find_canonical_name(dotted))


def member(m: Machine, module: SourceModule, name: str) -> Value | None:
    """Return the value of a top-level name of a project file."""
    interpret(m, module)
    found = module.scope.names.get(name)
    if isinstance(found, Lazy):
        # Two files may import a name from each other.
        module.scope.names[name] = UNKNOWN
        found = module.scope.names[name] = settle(m, found)
    return found


def interpret(m: Machine, module: SourceModule) -> None:
    """Run the top level of another file once, without emitting facts."""
    if module.interpreted:
        return
    module.interpreted = True
    try:
        body = module.tree.body
    except SourceError:
        # The error is reported when that file itself is checked; here its names are just unknown.
        return
    loops, m.loops = m.loops, []
    with m.quietly(), m.inside(CallFrame(module, module.scope)):
        m.block(body)
    m.loops = loops
