"""Functions and loops under a guard: what is traced again, and why; and where steps begin."""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from stoker.doctor.attach.patching import Patches
from stoker.doctor.attach.sites import KERAS_LOOP, USER, definition
from stoker.doctor.guard import scope
from stoker.doctor.guard.events import SITES, Event, deliver
from stoker.doctor.guard.limits import RETRACES
from stoker.doctor.guard.placement import Placement
from stoker.doctor.guard.steps import CALLS, INFERENCE, TAPES, TRAINING
from stoker.doctor.probes.retrace import ArgumentChange, changes_between, signature_of, updates_variables
from stoker.tf_internals import functions


@dataclass
class _Function:
    """The facts known about a tf.function object."""

    reference: weakref.ref[Any]
    number: int
    # Keras' functions mark no steps, because Keras itself marks them.
    is_step: bool
    rank: int | None = None


class _Here(threading.local):
    """The state of one thread."""

    tracing = False
    silent = False
    calling: _Function | None = None


class TracingHooks(Patches):
    """The patches for retraces and steps."""

    def __init__(self, placement: Placement) -> None:
        super().__init__()
        self._placement = placement
        self._here = _Here()
        self._numbers = itertools.count()
        self._functions: dict[int, _Function] = {}
        # The function object that was last traced for each definition at a line.
        self._traced: dict[Any, int] = {}
        self._batch = 0

    def attach(self) -> None:
        import tensorflow as tf

        self._flatten = tf.nest.flatten
        self._eagerly = tf.executing_eagerly
        self._traced.clear()
        self.replace(*functions.concrete_function_creation(), self._creation)
        self.replace(*functions.function_call(), self._call)
        self.replace(tf.GradientTape, "__enter__", self._tape)
        self._keras = False
        self._attach_to_keras()

    def _attach_to_keras(self) -> None:
        """Attach to Keras once it is imported, which may happen under the guard."""
        callbacks = getattr(getattr(sys.modules.get("keras"), "callbacks", None), "CallbackList", None)
        if callbacks is not None and not self._keras:
            self._keras = True
            for phase, rank in (("train", TRAINING), ("test", INFERENCE), ("predict", INFERENCE)):
                self.replace(callbacks, f"on_{phase}_batch_begin", partial(self._batch_begin, phase, rank))
                self.replace(callbacks, f"on_{phase}_batch_end", partial(self._batch_end, phase))

    def silence_steps(self, silent: bool) -> None:
        """Let only one of several replicas' threads count the steps."""
        self._here.silent = silent

    def _creation(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def create(function_type: Any, type_context: Any, func_graph: Any, options: Any) -> Any:
            __tracebackhide__ = True
            regions, here = scope.current(), self._here
            if not regions or here.tracing:
                return original(function_type, type_context, func_graph, options)
            self._on_trace(regions, function_type, options)
            here.tracing = True
            try:
                return original(function_type, type_context, func_graph, options)
            finally:
                here.tracing = False

        return create

    def _on_trace(self, regions: tuple[scope.Region, ...], function_type: Any, options: Any) -> None:
        __tracebackhide__ = True
        site, _ = SITES.caller()
        if site is None:
            return
        where = definition(options.python_function)
        name = getattr(options.python_function, "__name__", "") or (where[2] if where else "function")
        changes = _compare_with_nearest(function_type, options.function_cache)
        if changes:
            told = "; ".join(f"`{c.argument}`: {c.old} → {c.new}" for c in changes)
            deliver(regions, Event(RETRACES, site, 0, lambda: f"`{name}` traced again, {told}"))
        elif self._is_new_object(where, site):
            told = "its tf.function is created again each time; create it once"
            deliver(regions, Event(RETRACES, site, 0, lambda: f"`{name}` traced again: {told}"))

    def _is_new_object(self, where: Any, site: Any) -> bool:
        """Return whether a user's definition, traced here before, comes in another tf.function object."""
        calling = self._here.calling
        if calling is None or where is None or SITES.kind_of(where[0]) != USER:
            return False
        last = self._traced.get((where, site))
        self._traced[where, site] = calling.number
        return last is not None and last != calling.number

    def _call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(function: Any, *args: Any, **kwds: Any) -> Any:
            __tracebackhide__ = True
            regions, here = scope.current(), self._here
            if not regions or here.tracing or not self._eagerly():
                return original(function, *args, **kwds)
            outer = here.calling
            here.calling = known = self._look_up(function)
            if known.is_step:
                self._begin(regions, CALLS if known.rank is None else known.rank, known.number)
            try:
                result = original(function, *args, **kwds)
            finally:
                here.calling = outer
            if known.rank is None:
                self._grade(regions, known, function)
            if not self._placement.is_accelerated() and self._placement.is_pinned_to_host():
                self._placement.mark(self._flatten(result))
            return result

        return call

    def _look_up(self, function: Any) -> _Function:
        number, functions = id(function), self._functions
        known = functions.get(number)
        if known is None:
            where = definition(function.python_function)
            is_step = where is None or SITES.kind_of(where[0]) != KERAS_LOOP
            if not is_step:
                self._attach_to_keras()
            reference = weakref.ref(function, lambda _: functions.pop(number, None))
            known = functions[number] = _Function(reference, next(self._numbers), is_step)
        return known

    def _grade(self, regions: tuple[scope.Region, ...], known: _Function, function: Any) -> None:
        """Note, after a function's first trace, whether a call of it is a training step."""
        graphs = [concrete.graph for concrete in functions.traces(function)]
        known.rank = TRAINING if any(updates_variables(graph) for graph in graphs) else CALLS
        for region in regions:
            region.regrade_steps(known.rank, known.number)

    def _tape(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def enter(tape: Any) -> Any:
            regions = scope.current()
            if regions and not self._here.tracing and self._eagerly():
                self._begin(regions, TAPES, SITES.caller()[0])
            return original(tape)

        return enter

    def _batch_begin(self, phase: str, rank: int, original: Callable[..., Any]) -> Callable[..., Any]:
        def begin(callbacks: Any, batch: Any, logs: Any = None) -> Any:
            __tracebackhide__ = True
            regions = scope.current()
            if regions:
                self._batch = int(batch)
                self._begin(regions, rank, phase)
            return original(callbacks, batch, logs)

        return begin

    def _batch_end(self, phase: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def end(callbacks: Any, batch: Any, logs: Any = None) -> Any:
            __tracebackhide__ = True
            # Several steps in one execution: only the number of the last one is known.
            more = int(batch) - self._batch
            if more > 0:
                for region in scope.current():
                    region.more_steps(phase, more)
            return original(callbacks, batch, logs)

        return end

    def _begin(self, regions: tuple[scope.Region, ...], rank: int, source: object) -> None:
        if self._here.silent:
            return
        for region in regions:
            region.begin_step(rank, source)


def _compare_with_nearest(function_type: Any, cache: Any) -> list[ArgumentChange]:
    """Return what differs from the most similar signature of earlier traces; nothing for the first trace."""
    if cache is None:
        return []
    new = signature_of(function_type)
    all_changes = [changes_between(signature_of(old.function_type), new) for old in cache.values()]
    return min(all_changes, key=len, default=[])
