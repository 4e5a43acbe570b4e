"""Calls of compiled functions: the time inside the graph, the Python around it, and which calls are steps."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from stoker.doctor.attach.patching import Replacement
from stoker.doctor.attach.sites import SiteKey, count_site, definition
from stoker.doctor.probes.exchange_meter import ExchangeMeter
from stoker.doctor.probes.parts.functions import CallsPart
from stoker.doctor.probes.probe import Growing, Probe
from stoker.doctor.probes.recorder import DISPATCH, GRAPH, PAUSED, PYTHON, Recorder
from stoker.doctor.probes.retrace import Retrace
from stoker.doctor.probes.steps import CALLS, TRAINING, Steps
from stoker.tf_internals import eager, functions
from stoker.tf_internals.types import CompiledFunction

T = TypeVar("T")
_MAX_FUNCTIONS = 1000
# The stack and the arguments are looked at once in this many calls, because that takes longer than some calls.
_LOOK_EVERY = 64
_SEVERAL = 3
# Ends the name of a span in which a graph ran for the first time, and so was optimised or even compiled.
FIRST_CALL = ", first call"


@dataclass
class Execution:
    """The runs of one concrete function. The first also optimises the graph, and compiles it under XLA."""

    calls: int = 0
    ns: int = 0
    first_ns: int = 0


@dataclass
class CalledFunction:
    """All calls of the functions made from one definition."""

    name: str
    definition: SiteKey | None
    jit_compile: bool = False
    calls: int = 0
    # The whole calls, the part of them inside the graph, and the Python around the graph (without tracing).
    ns: int = 0
    graph_ns: int = 0
    dispatch_ns: int = 0
    # The Python around the first call, which looks up and keeps what later calls find.
    first_dispatch_ns: int = 0
    # The batch size of the last call whose arguments were looked at.
    batch: int = 0
    # The class of step that a call is (`steps.TRAINING` or `steps.CALLS`); -1 until the function is traced.
    rank: int = -1
    sites: dict[SiteKey, int] = field(default_factory=dict)
    executions: dict[bytes, Execution] = field(default_factory=dict)

    def first_call_excess_ns(self, busy_share: float = 1.0) -> int:
        """Return how much longer first executions took than usual ones: graph optimisation and XLA compilation.

        A single execution of a function shows nothing (a whole epoch may be one call), so first executions are compared
        with later ones. If several were executed, each only once, `busy_share` of their time was kernels, and the rest
        preparation.
        """
        later = [(e.ns - e.first_ns) / (e.calls - 1) for e in self.executions.values() if e.calls > 1]
        if not later:
            several = len(self.executions) >= _SEVERAL
            return int(sum(e.ns for e in self.executions.values()) * (1 - busy_share)) if several else 0
        usual = min(later)
        return int(sum(max(0.0, e.first_ns - usual) for e in self.executions.values()))


class GraphCalls(Probe):
    """Times tf.function calls on the main thread."""

    name = "graph calls"

    def __init__(self, recorder: Recorder, retrace: Retrace, steps: Steps) -> None:
        super().__init__(recorder)
        self.functions: dict[SiteKey | str, CalledFunction] = {}
        self.exchanges = ExchangeMeter()
        self._retrace = retrace
        self._steps = steps
        # By id, with a reference that drops the entry when the function goes. A weak dictionary is slower.
        self._known: dict[int, tuple[CalledFunction, weakref.ref[CompiledFunction]]] = {}
        self._current: CalledFunction | None = None

    def attach(self) -> None:
        call = Replacement(*functions.function_call(), self._call)
        call.put_in()
        self.on_detach(call.take_out)
        # Keras' loops count their steps without this patch. In the user's own loops, steps are counted by calls.
        self.let_pause(call.put_in, lambda: call.take_out() if self._steps.keras_depth else None)
        self.replace(*eager.function_execution(), self._execute, pausable=True)

    def list_growing(self) -> Iterable[Growing]:
        for entry in list(self.functions.values()):
            counts = ("calls",) if self._steps.keras_depth else ()
            yield entry, counts, ("ns", "graph_ns", "dispatch_ns")
            for execution in list(entry.executions.values()):
                yield execution, ("calls",), ("ns",)

    def measure(self, ended: bool) -> CallsPart:
        return CallsPart(list(self.functions.values()))

    def _call(self, original: Callable[..., T]) -> Callable[..., T]:
        recorder, known_functions = self.recorder, self._known
        get_ident, main_thread = threading.get_ident, recorder.main_thread

        def call(function: CompiledFunction, *args: object, **kwds: object) -> T:
            if not self.active or get_ident() != main_thread:
                return original(function, *args, **kwds)
            if recorder.top == PAUSED:
                known = known_functions.get(id(function))
                if known is not None and not recorder.is_due:
                    self._current = known[0]
                    known[0].calls += 1
                    result = original(function, *args, **kwds)
                    self._current = None
                    return result
                recorder.on_wake()
            if recorder.top != PYTHON and recorder.top != DISPATCH:
                return original(function, *args, **kwds)
            outer, totals = self._current, recorder.totals
            entry = self.call_safely(self._enter, function, args, kwds)
            self._current = entry
            started = recorder.enter(DISPATCH)
            graph_before, dispatch_before = totals[GRAPH], totals[DISPATCH]
            try:
                return original(function, *args, **kwds)
            finally:
                ended = recorder.leave()
                self._current = outer
                if entry is not None:
                    if recorder.window is not None:
                        recorder.window.label(started, DISPATCH, entry, entry.name)
                    entry.ns += ended - started
                    entry.graph_ns += totals[GRAPH] - graph_before
                    entry.dispatch_ns += totals[DISPATCH] - dispatch_before
                    if entry.calls == 1:
                        entry.first_dispatch_ns = entry.dispatch_ns
                    if not self._steps.keras_depth:
                        self._tick(entry, ended)

        return call

    def _execute(self, original: Callable[..., T]) -> Callable[..., T]:
        recorder, exchanges = self.recorder, self.exchanges

        def call_function(context: object, name: bytes, *args: object, **kwds: object) -> T:
            top = recorder.top
            if (
                (top != PYTHON and top != DISPATCH) or not recorder.on_main_thread()
            ) and not recorder.has_ended_pause():
                return original(context, name, *args, **kwds)
            started = recorder.enter(GRAPH)
            if not recorder.first_dispatch_ns:
                recorder.first_dispatch_ns = started
            used = time.process_time_ns() if exchanges.on else None
            try:
                return original(context, name, *args, **kwds)
            finally:
                elapsed = recorder.leave() - started
                entry = self._current
                if entry is not None:
                    first = _count_execution(entry, name, elapsed)
                    if used is not None and not first:
                        exchanges.add(elapsed, time.process_time_ns() - used)
                    if recorder.window is not None:
                        recorder.window.label(started, GRAPH, entry, entry.name + FIRST_CALL * first)

        return call_function

    def _enter(
        self, function: CompiledFunction, args: tuple[object, ...], kwds: dict[str, object]
    ) -> CalledFunction:
        known = self._known.get(id(function))
        entry = known[0] if known is not None else self._remember(function)
        entry.calls += 1
        self._retrace.call_serial += 1
        if entry.calls <= 3 or entry.calls % _LOOK_EVERY == 0:
            site, _ = self.recorder.sites.caller()
            count_site(entry.sites, site)
            entry.batch = leading_dimension((args, kwds))
        return entry

    def _remember(self, function: CompiledFunction) -> CalledFunction:
        number, entry = id(function), self._entry(function)
        self._known[number] = (entry, weakref.ref(function, lambda _: self._known.pop(number, None)))
        return entry

    def _entry(self, function: CompiledFunction) -> CalledFunction:
        where = definition(function.python_function)
        key: SiteKey | str = where or str(function.name)
        if key not in self.functions and len(self.functions) >= _MAX_FUNCTIONS:
            key = "<other functions>"
        entry = self.functions.get(key)
        if entry is None:
            entry = self.functions[key] = CalledFunction(str(function.name), where)
        entry.jit_compile = entry.jit_compile or functions.is_compiled_by_xla(function)
        return entry

    def _tick(self, entry: CalledFunction, now: int) -> None:
        rank = entry.rank
        if rank < 0:
            traced = self._retrace.functions.get(entry.definition or entry.name)
            # A function is traced at its first call. Its rank does not change after that.
            rank = entry.rank = TRAINING if traced is not None and traced.updates_variables else CALLS
        self._steps.event(rank, entry.definition or entry.name, now, entry.batch)


def _count_execution(entry: CalledFunction, name: bytes, elapsed: int) -> bool:
    """Count an execution of a concrete function, and return whether it was the first."""
    execution = entry.executions.get(name)
    is_first = execution is None
    if execution is None:
        if len(entry.executions) >= _MAX_FUNCTIONS:
            return False
        execution = entry.executions[name] = Execution(first_ns=elapsed)
    execution.calls += 1
    execution.ns += elapsed
    return is_first


def leading_dimension(value: object, depth: int = 0) -> int:
    """Return the batch size: the first dimension of the first array or tensor in a structure; 0 if there is none."""
    shape = getattr(value, "shape", None)
    if shape is not None and not isinstance(value, (list, tuple, dict)):
        try:
            return int(shape[0]) if len(shape) else 0
        except (TypeError, ValueError):
            return 0
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)) and depth < 4:
        for item in value[:8]:
            found = leading_dimension(item, depth + 1)
            if found > 1:
                return found
    return 0
