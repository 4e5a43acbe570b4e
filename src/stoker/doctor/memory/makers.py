"""Hooks that note what makes which objects on a device: lines of births, layers' scopes, marks around eager ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from stoker.doctor.attach.patching import Replacement
from stoker.doctor.attach.sites import Sites
from stoker.doctor.memory.births import Births, Scopes
from stoker.doctor.memory.events import MARK
from stoker.doctor.memory.owners import EagerPlaces
from stoker.tf_internals import Place, eager, keras_layers, keras_optimizers, profiler
from stoker.tf_internals.types import Layer, Optimizer, Variable

T = TypeVar("T")
# Calls one of Stoker's functions with its arguments, and keeps the function's failures from the program.
Caller = Callable[..., Any]
# A function to replace, and the function that makes its wrapper.
Hook = tuple[Place, Callable[[Any], object]]


class MakerHooks:
    """The wrappers around TensorFlow's and Keras' functions. The caller that installs them also removes them."""

    def __init__(self, sites: Sites, births: Births, scopes: Scopes, call_safely: Caller) -> None:
        self._sites, self._births, self._scopes = sites, births, scopes
        self._call_safely = call_safely

    def for_tensorflow(self) -> list[Hook]:
        """Return what to replace in TensorFlow."""
        return [(eager.variable_creation(), self._birth_of_variable)]

    def for_keras(self) -> list[Hook]:
        """Return what to replace in Keras."""
        return [
            (keras_layers.layer_creation(), self._birth_of_layer),
            (keras_optimizers.variable_tracking(), self._birth_of_optimizer),
            (keras_layers.scope_entry(), self._entry),
        ]

    def marks(self, places: EagerPlaces) -> list[Replacement]:
        """Return what marks each eager op with the place that ran it, while the profiler runs."""
        return [
            Replacement(*eager.op_dispatch(), self._marker(places)),
            Replacement(*eager.op_execution(), self._marker(places, may_call=True)),
            Replacement(*eager.host_conversion(), self._marker(places, "input")),
        ]

    def _marker(
        self, places: EagerPlaces, role: str = "", may_call: bool = False
    ) -> Callable[[Callable[..., T]], Callable[..., T]]:
        """Return what wraps a function in a mark of its caller; `may_call` if the function also runs compiled ones."""
        trace_me = profiler.trace_me()

        def wrap(original: Callable[..., T]) -> Callable[..., T]:
            def call_marked(*args: object, **kwds: object) -> T:
                is_call = may_call and _is_function(args)
                place = self._call_safely(places.number, role, is_call)
                mark = trace_me(f"{MARK}{-1 if place is None else place}")
                try:
                    return original(*args, **kwds)
                finally:
                    mark.Stop()

            return call_marked

        return wrap

    def _birth_of_variable(self, original: Callable[..., None]) -> Callable[..., None]:
        def make(variable: Variable, *args: object, **kwds: object) -> None:
            original(variable, *args, **kwds)
            self._call_safely(self._note_birth, variable)

        return make

    def _birth_of_layer(self, original: Callable[[Layer], None]) -> Callable[[Layer], None]:
        def make(layer: Layer) -> None:
            original(layer)
            self._call_safely(self._note_birth, layer)

        return make

    def _birth_of_optimizer(
        self, original: Callable[[Optimizer, Variable], None]
    ) -> Callable[[Optimizer, Variable], None]:
        def track(optimizer: Optimizer, variable: Variable) -> None:
            original(optimizer, variable)
            self._call_safely(self._note_birth, optimizer)

        return track

    def _entry(self, original: Callable[[T], object]) -> Callable[[T], object]:
        import tensorflow as tf

        def enter(scope: T) -> object:
            entered = original(scope)
            caller = getattr(scope, "caller", None)
            if caller is not None and not tf.executing_eagerly():
                graph = tf.compat.v1.get_default_graph()
                self._call_safely(self._scopes.note, graph, graph.get_name_scope(), caller)
            return entered

        return enter

    def _note_birth(self, thing: object) -> None:
        if self._births.site_of(thing) is None:
            self._births.note(thing, self._sites.caller()[0])


def _is_function(args: tuple[object, ...]) -> bool:
    """Return whether the arguments of an execution, `(context, device, name, ...)`, name a compiled function."""
    name = args[2] if len(args) > 2 else ""
    text = name.decode() if isinstance(name, bytes) else str(name)
    return text.startswith("__")
