"""Tracing: every trace of every tf.function, its seconds, the arguments that changed, and the line that called.

Signatures are kept as text, never as TensorFlow objects, so that the probe keeps nothing of the program alive.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass, field

from stoker.doctor.attach.sites import USER, SiteKey, definition, is_own_loop
from stoker.doctor.probes.parts.functions import TracesPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import PAUSED, TRACE, Recorder
from stoker.tf_internals import functions, graphs
from stoker.tf_internals.types import (
    ConcreteFunction,
    FunctionType,
    Graph,
    Operation,
    TracingOptions,
    Variable,
)

# Each argument's type as text, and whether it is a Python value.
Signature = dict[str, tuple[str, bool]]
_MAX_FUNCTIONS = 1000
_MAX_CHANGES = 20


@dataclass
class ArgumentChange:
    """One argument whose new value or type made TensorFlow trace again."""

    argument: str
    old: str
    new: str
    # Whether the value is a Python value, not a tensor's shape or dtype.
    python: bool


@dataclass
class TracedFunction:
    """All traces of the functions made from one definition."""

    name: str
    definition: SiteKey | None
    # How many tf.function objects this one definition was wrapped into.
    objects: int = 0
    traces: int = 0
    # Traces of an object that had been traced before with other arguments.
    retraces: int = 0
    ns: int = 0
    # The part of `ns` after the first trace, which is what repeated tracing costs.
    repeated_ns: int = 0
    updates_variables: bool = False
    # The size of the variables that it trains.
    variable_bytes: int = 0
    # The number of exchanges with other workers in one step, and their bytes in total.
    collectives: int = 0
    collective_bytes: int = 0
    # `Retrace.call_serial` at the last trace.
    last_serial: int = -1
    sites: dict[SiteKey, int] = field(default_factory=dict)
    changes: list[ArgumentChange] = field(default_factory=list)


class Retrace(Probe):
    """Times tracing on the main thread and explains repeated traces."""

    name = "retrace"

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.functions: dict[SiteKey | str, TracedFunction] = {}
        # Signature of the last trace, by the id of the function's own cache (one per tf.function object).
        self._signatures: dict[int, Signature] = {}
        # Calls of compiled functions so far. One call may trace twice, to create variables.
        self.call_serial = 0
        # Functions to call with each function that was just traced.
        self.on_trace: list[Callable[[ConcreteFunction], None]] = []

    def attach(self) -> None:
        self.replace(*functions.concrete_function_creation(), self._creation)

    def measure(self, ended: bool) -> TracesPart:
        functions = list(self.functions.values())
        defined = [f.definition for f in functions if f.definition]
        users = frozenset(site for site in defined if self._is_users(site))
        return TracesPart(functions, users, frozenset(site for site in defined if is_own_loop(site[0])))

    def _creation(self, original: Callable[..., ConcreteFunction]) -> Callable[..., ConcreteFunction]:
        def create(
            function_type: FunctionType,
            type_context: object,
            func_graph: object,
            tracing_options: TracingOptions,
        ) -> ConcreteFunction:
            recorder = self.recorder
            if not self.active or not recorder.on_main_thread():
                return original(function_type, type_context, func_graph, tracing_options)
            if recorder.top == PAUSED:
                # A new trace may be a new step.
                recorder.on_wake()
            nested = recorder.top == TRACE
            started = recorder.enter(TRACE)
            concrete = None
            try:
                concrete = original(function_type, type_context, func_graph, tracing_options)
                return concrete
            finally:
                ended = recorder.leave()
                if not nested:
                    self.call_safely(self._record, function_type, tracing_options, concrete, started, ended)

        return create

    def _record(
        self,
        function_type: FunctionType,
        options: TracingOptions,
        concrete: ConcreteFunction | None,
        started: int,
        ended: int,
    ) -> None:
        elapsed = ended - started
        entry = self._entry(options.python_function)
        site, _ = self.recorder.sites.caller()
        signature = signature_of(function_type)
        previous = self._find_previous(options.function_cache, signature)
        new_object = previous is None and entry.last_serial != self.call_serial
        entry.last_serial = self.call_serial
        entry.objects += new_object
        changes = changes_between(previous, signature) if previous is not None else []
        if entry.traces and (changes or new_object):
            entry.repeated_ns += elapsed
        if changes:
            entry.retraces += 1
            entry.changes = (entry.changes + changes)[:_MAX_CHANGES]
        entry.traces += 1
        entry.ns += elapsed
        if site is not None and len(entry.sites) < _MAX_CHANGES:
            entry.sites[site] = entry.sites.get(site, 0) + 1
        if concrete is not None:
            entry.updates_variables = entry.updates_variables or updates_variables(concrete.graph)
            entry.variable_bytes = max(entry.variable_bytes, nbytes_of(concrete.graph.trainable_variables))
            entry.collectives, entry.collective_bytes = collectives(concrete.graph)
            for call in self.on_trace:
                call(concrete)
        if self.recorder.window is not None:
            self.recorder.window.label(started, TRACE, entry, entry.name)

    def _find_previous(self, cache: Sized | None, signature: Signature) -> Signature | None:
        """Return the signature that this function was last traced with; None for a function never traced.

        A cache cannot be referenced weakly, and its id may be used again. An empty cache belongs to a new function.
        """
        if cache is None:
            return None
        previous = self._signatures.get(id(cache)) if len(cache) else None
        if len(self._signatures) > _MAX_FUNCTIONS:
            self._signatures.clear()
        self._signatures[id(cache)] = signature
        return previous

    def _entry(self, python_function: object) -> TracedFunction:
        where = definition(python_function)
        name = getattr(python_function, "__name__", "") or (where[2] if where else "function")
        key: SiteKey | str = where or name
        entry = self.functions.get(key)
        if entry is None:
            if len(self.functions) >= _MAX_FUNCTIONS:
                key = "<other functions>"
            entry = self.functions.setdefault(key, TracedFunction(name, where))
        return entry

    def _is_users(self, site: SiteKey) -> bool:
        return self.recorder.sites.kind_of(site[0]) == USER


def nbytes_of(variables: Iterable[Variable]) -> int:
    """Return the size of the variables' values. A variable of unknown shape counts as nothing."""
    return sum(int(v.dtype.size) * int(v.shape.num_elements() or 0) for v in variables)


def signature_of(function_type: FunctionType) -> Signature:
    """Return the traced type of each argument."""
    signature = {}
    for name, parameter in function_type.parameters.items():
        text = str(parameter.type_constraint)
        signature[name] = (_shorten(text), "Literal" in text or "Tensor" not in text)
    return signature


def _shorten(text: str) -> str:
    """Shorten `TensorSpec(shape=(32, 10), dtype=tf.float32, name=None)` to `float32[32, 10]`, `Literal[3]` to `3`."""
    text = re.sub(
        r"TensorSpec\(shape=\(?(.*?)\)?, dtype=tf\.(\w+), name=[^)]*\)",
        lambda m: f"{m[2]}[{m[1].rstrip(',')}]",
        text,
    )
    text = re.sub(r"Literal\[([^\]]*)\]", r"\1", text)
    return text if len(text) <= 200 else text[:197] + "..."


def changes_between(old: Signature, new: Signature) -> list[ArgumentChange]:
    """Return the arguments that differ between two signatures."""
    changes = []
    for name, (text, python) in new.items():
        before = old.get(name, ("absent", python))
        if before[0] != text:
            changes.append(ArgumentChange(name, before[0], text, python))
    return changes


def updates_variables(graph: Graph) -> bool:
    """Return whether the graph assigns to variables that train, so that a call of it is part of a training step.

    A validation step only assigns to its metrics. It is unknown which variables the functions inside a graph assign to.
    So any assignment there counts, if the graph has anything to train.
    """
    if not graph.trainable_variables:
        return False
    trained = {id(v.handle) for v in graph.trainable_variables}
    inside = {id(internal) for external, internal in graph.captures if id(external) in trained}
    if any(id(op.inputs[0]) in inside for op in graph.get_operations() if _assigns(op)):
        return True
    return any(_assigns(op) for called in graphs.called_graphs(graph) for op in called.get_operations())


def collectives(graph: Graph) -> tuple[int, int]:
    """Return how many exchanges with other workers a step has, and their bytes.

    If the graph calls functions that exchange, as a loop over steps does, the exchanges of one such function count, but
    not those that come once before or after the loop.
    """
    inside = [sizes for called in graphs.called_graphs(graph) if (sizes := _exchange_sizes(called))]
    sizes = max(inside, key=len) if inside else _exchange_sizes(graph)
    return len(sizes), sum(sizes)


def _exchange_sizes(graph: Graph) -> list[int]:
    """Return the bytes of each exchange of a graph."""
    tensors = [
        op.inputs[0] for op in graph.get_operations() if op.type.startswith("Collective") and op.inputs
    ]
    return [int(t.dtype.size) * int(t.shape.num_elements() or 0) for t in tensors if t.dtype.size]


def _assigns(op: Operation) -> bool:
    return bool(op.type.startswith(("Assign", "ResourceApply", "ResourceSparseApply", "ResourceScatter")))
