"""Analyse one file: interpret its top level, then every function for which no call was found."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import replace

from stoker.doctor.check.source import classes, functions, pipelines
from stoker.doctor.check.source.facts import Analysis
from stoker.doctor.check.source.frames import CallFrame
from stoker.doctor.check.source.machine import Machine
from stoker.doctor.check.source.module import ClassInfo, FunctionNode, SourceError, SourceModule
from stoker.doctor.check.source.names import BATCH_HOOK, last_name
from stoker.doctor.check.source.project import Project
from stoker.doctor.check.source.values import Class, Dataset, Func, Instance

_COMPILED_METHODS = frozenset(
    {
        "call",
        "train_step",
        "test_step",
        "predict_step",
        "compute_loss",
        "build",
        "update_state",
        "result",
        "__call__",
    }
)
_TELLING = re.compile(
    r"\b(?:for|while)\b|Dataset|dataset|_ds\b|\bds\b|function|float64|mixed_precision|scaled|py_func|callbacks"
    r"|\.(?:map|fit|compile|predict|evaluate|run|set_floatx|layers|Sequential|Dense)\b"
    r"|\b(?:Dense|Sequential|Model|Input)\(|on_\w*batch|\breturn self\.\w+$",
    re.MULTILINE,
)
_RECURSION = 20_000
# Names that are called or passed as an argument.
_CALLED = re.compile(r"(?<!def )\b(\w+)\s*[(,)]")


def analyse(module: SourceModule, project: Project) -> Analysis:
    """Interpret a module and collect its facts.

    Raises:
        SourceError: the module is nested too deeply.
    """
    project.start(module)
    m = Machine(project, module)
    if module.uses_tensors or project.lends_tensors(module):
        _interpret(m)
    else:
        module.validate()
    followed = frozenset(
        (function.module.path, function.node.lineno)
        for node, function in m.functions.items()
        if node in m.visited and function.module is not module
    )
    return Analysis(module, m.facts, followed, project.consulted, frozenset(_batch_methods(m)))


def _interpret(m: Machine) -> None:
    m.main.interpreted = True
    m.frame.graph = m.main.builds_graphs
    limit = sys.getrecursionlimit()
    # The tree of a sum of a thousand terms is a thousand levels deep.
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        m.block(m.main.tree.body)
        _run_the_rest(m)
    except RecursionError as error:
        raise SourceError(f"{m.main.path}:1:1: is nested too deeply to analyse") from error
    finally:
        sys.setrecursionlimit(limit)


def _batch_methods(m: Machine) -> Iterator[ast.AST]:
    for info in m.classes.values():
        if classes.is_callback(info):
            yield from (
                node
                for node in info.node.body
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and BATCH_HOOK.match(node.name)
            )


def _run_the_rest(m: Machine) -> None:
    """Run the functions not run so far: those that nothing calls, then those called somewhere, then nested ones."""
    waiting = [node for node in m.functions if _is_waiting(m, node)]
    called = _called_names(m.main.text) if waiting else set()
    nested = False
    known: set[ast.AST] = set()
    while waiting:
        owners = _owners(m)
        for node in sorted(waiting, key=lambda n: getattr(n, "name", "") in called):
            if _is_waiting(m, node) and m.budget > 0 and not isinstance(node, ast.Lambda):
                _run_root(m, node, owners.get(node), nested=nested)
        known.update(waiting)
        # Running a function defines its nested functions, such as the target of a thread, which no call names.
        waiting = [node for node in m.functions if node not in known and _is_waiting(m, node)]
        nested = True


def _is_waiting(m: Machine, node: FunctionNode | ast.Lambda) -> bool:
    return node not in m.visited and m.functions[node].module is m.main and not isinstance(node, ast.Lambda)


def _owners(m: Machine) -> dict[ast.AST, ClassInfo]:
    return {child: info for node, info in m.classes.items() for child in info.node.body}


def _called_names(text: str) -> set[str]:
    # Search the text: for a large file, walking the tree again would take longer than the rest of the analysis.
    return set(_CALLED.findall(text))


def _run_root(m: Machine, node: FunctionNode, info: ClassInfo | None, *, nested: bool = False) -> None:
    function = m.functions[node]
    if function.compiled is None and not node.decorator_list and not _may_tell(m.main, node):
        return
    if info is not None:
        function = _as_method(function, info)
        _initialise(m, info)
    by_mode = m.main.builds_graphs
    graph = (
        by_mode or function.compiled is not None or (info is not None and _is_compiled_by_base(node, info))
    )
    callback = info is not None and classes.is_callback(info) and bool(BATCH_HOOK.match(node.name))
    # A base class may call and compile a derived class's method, so its code alone proves nothing.
    own = info is None or not classes.has_unseen_base(info)
    # A nested function may be returned and compiled elsewhere.
    hot = callback or (own and not nested and is_step(m.main, node))
    m.loops = []
    m.pending = []
    m.frame = CallFrame(m.main, m.main.scope, hot=hot, repeated=hot, presumed=node)
    by_base = graph and node.name in ("train_step", "test_step")
    traced = node if function.compiled is not None or by_base else None
    names = functions.unknown_names(m, function)
    summary = functions.follow(m, function, names, graph=graph, traced=traced)
    if isinstance(summary.value, Dataset):
        pipelines.consume(m, _return_of(node), summary.value, "returned")


def _may_tell(module: SourceModule, node: FunctionNode) -> bool:
    """Return whether a function without callers may hold anything to find: a loop, a tape, a pipeline, a model.

    Most functions of a library hold none of these, and running them would take most of the time.
    """
    text = "\n".join(module.lines[node.lineno - 1 : node.end_lineno])
    return bool(_TELLING.search(text)) or "GradientTape" in module.text


def _is_compiled_by_base(node: FunctionNode, info: ClassInfo) -> bool:
    return node.name in _COMPILED_METHODS and classes.runs_in_graph(info) and not classes.is_callback(info)


def _as_method(function: Func, info: ClassInfo) -> Func:
    member = info.members.get(function.node.name) if not isinstance(function.node, ast.Lambda) else None
    known = member if isinstance(member, Func) else function
    static = any(last_name(d) == "staticmethod" for d in getattr(known.node, "decorator_list", ()))
    return replace(known, scope=info.scope, bound=None if static else Instance(info))


def _initialise(m: Machine, info: ClassInfo) -> None:
    """Learn the attributes of a class that the file itself never instantiates."""
    if info.initialised:
        return
    info.initialised = True
    for base in info.bases:
        if isinstance(base, Class):
            _initialise(m, base.info)
    for name in ("__init__", "build", "compile"):
        function = info.members.get(name)
        if isinstance(function, Func):
            bound = replace(function, bound=Instance(info))
            m.frame = CallFrame(m.main, m.main.scope)
            with m.quietly():
                functions.follow(m, bound, functions.unknown_names(m, bound), graph=False, traced=None)


def _return_of(node: FunctionNode) -> ast.AST:
    for child in ast.walk(node):
        if isinstance(child, ast.Return) and child.value is not None:
            return child
    return node


def is_step(module: SourceModule, node: FunctionNode) -> bool:
    """Return whether one run of this function is one train step: a tape and an optimizer, outside any loop."""
    if not any("GradientTape" in line for line in module.lines[node.lineno - 1 : node.end_lineno]):
        return False
    tape = applied = False
    stack: list[ast.AST] = list(node.body)
    while stack:
        child = stack.pop()
        if isinstance(
            child, (ast.For, ast.While, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
        ):
            continue
        if isinstance(child, ast.Call):
            name = last_name(child.func)
            tape = tape or name == "GradientTape"
            applied = applied or name in ("apply_gradients", "minimize")
        stack.extend(ast.iter_child_nodes(child))
    return tape and applied
