"""`tf.function`: its calls and traces, and AutoGraph's conversion of Python functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from stoker.tf_internals import Place
from stoker.tf_internals.types import CompiledFunction, ConcreteFunction, Nest


def function_call() -> Place:
    """Return the call of a `tf.function`, inside the traceback filter of `__call__`: `(function, *args, **kwds)`."""
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    return polymorphic_function.Function, "_call"


def concrete_function_creation() -> Place:
    """Return the function that traces: `(function_type, type_context, func_graph, options) -> concrete function`.

    `options` has `python_function` and `function_cache`; `function_type` has `parameters` by name.
    """
    from tensorflow.python.eager.polymorphic_function import tracing_compilation

    return tracing_compilation, "_create_concrete_function"


def traces(function: CompiledFunction) -> list[ConcreteFunction]:
    """Return the concrete functions of a `tf.function`. The public API can only count them."""
    return list(function._function_cache.values())


def is_compiled_by_xla(function: CompiledFunction) -> bool:
    """Return whether a `tf.function` was made with `jit_compile=True`."""
    return bool(function._jit_compile)


def silence_retracing_warning(function: CompiledFunction) -> None:
    """Leave a `tf.function` out of the count behind TensorFlow's warning of frequent retracing."""
    function._omit_frequent_tracing_warning = True


def convert(function: Callable[..., Nest]) -> Callable[..., Nest]:
    """Convert a Python function as `tf.data` does before tracing: `if` and `for` may use tensors.

    The public `tf.autograph.to_graph` also converts functions that must stay as they are.
    """
    from tensorflow.python.autograph.core import ag_ctx
    from tensorflow.python.autograph.impl import api

    converted: Callable[..., Nest] = api.tf_convert(function, ag_ctx.control_status_ctx())
    return converted


def hide_frames(library: str, root: str) -> None:
    """Have the traceback filter of "tensorflow" or "keras" leave out frames below `root`, as it does its own."""
    name = {
        "tensorflow": "tensorflow.python.util.traceback_utils",
        "keras": "keras.src.utils.traceback_utils",
    }
    module: Any = sys.modules.get(name[library])
    excluded = getattr(module, "_EXCLUDED_PATHS", None)
    if isinstance(excluded, tuple):
        module._EXCLUDED_PATHS = (*excluded, root)
