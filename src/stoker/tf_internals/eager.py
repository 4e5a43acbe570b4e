"""Tensors, ops and tapes outside of graphs, and the state of TensorFlow's runtime."""

from __future__ import annotations

import sys
from typing import Any

from stoker.tf_internals import Place


def tensor_type() -> type:
    """Return the class of eager tensors. Making a tensor to ask for its type would start the devices."""
    from tensorflow.python.framework import ops

    kind: type = ops.EagerTensor
    return kind


def tensor_read() -> Place:
    """Return the method that `.numpy()`, `float()`, `if tensor:`, `str` and the like call to get a tensor's value."""
    return tensor_type(), "_numpy_internal"


def dlpack_export() -> Place:
    """Return the function that exports a tensor through DLPack: `(tensor) -> capsule`."""
    from tensorflow.python import pywrap_tfe

    return pywrap_tfe, "TFE_ToDlpackCapsule"


def host_conversion() -> Place:
    """Return the function that makes a tensor from a value on the host: `(value, context, dtype=None) -> tensor`."""
    from tensorflow.python.framework import constant_op

    return constant_op, "convert_to_eager_tensor"


def current_context() -> Any:
    """Return the context that functions such as `host_conversion` take."""
    from tensorflow.python.eager import context

    return context.context()


def op_dispatch() -> Place:
    """Return the function that runs an eager op: `(context, op, name, *inputs and attributes) -> result`."""
    from tensorflow.python import pywrap_tfe

    return pywrap_tfe, "TFE_Py_FastPathExecute"


def op_execution() -> Place:
    """Return the function that runs ops and compiled functions that do not take the fast path."""
    from tensorflow.python import pywrap_tfe

    return pywrap_tfe, "TFE_Py_Execute"


def variable_updates() -> list[Place]:
    """Return the methods that give a variable another value: `(variable, value, ...) -> result`."""
    from tensorflow.python.ops.resource_variable_ops import ResourceVariable

    return [(ResourceVariable, name) for name in ("assign", "assign_add", "assign_sub")]


def context_creation() -> Place:
    """Return the function that starts the devices, at the first op: `(options) -> handle`."""
    from tensorflow.python import pywrap_tfe

    return pywrap_tfe, "TFE_NewContext"


def function_execution() -> Place:
    """Return the function that runs a traced function: `(context, name in bytes, tensors, outputs) -> results`."""
    from tensorflow.python.eager import context

    return context.Context, "call_function"


def has_started() -> bool:
    """Return whether the devices have started. Never imports or starts TensorFlow."""
    return _started_context() is not None


def _started_context() -> Any:
    current = getattr(sys.modules.get("tensorflow.python.eager.context"), "_context", None)
    return current if current is not None and current._initialized else None


def intra_op_threads() -> int:
    """Return the number of threads that a kernel may use, as the program set it; 0 if not set or not started."""
    return int(getattr(_started_context(), "_intra_op_parallelism_threads", 0) or 0)


def is_eager() -> bool:
    """Return whether this thread runs ops at once instead of tracing them."""
    current = _started_context()
    return current is not None and bool(current.executing_eagerly())


def is_async() -> bool:
    """Return whether ops run asynchronously.

    The public `tf.config.experimental.get_synchronous_execution` starts devices.
    """
    current = _started_context()
    return current is not None and bool(current.is_async())


def thread_state() -> Any:
    """Return TensorFlow's state of the calling thread; `device_name` is that of the innermost `tf.device`.

    No public function tells the device without running an op. Callers keep this object and read it at every op.
    """
    from tensorflow.python.eager import context

    return context.context()._thread_local_data


def global_seed() -> int | None:
    """Return the last argument of `tf.random.set_seed`; None if the program has not called it."""
    from tensorflow.python.eager import context

    seed = context.global_seed()
    return None if seed is None else int(seed)


def is_recording(tape: Any) -> bool:
    """Return whether a `tf.GradientTape` is open."""
    return bool(tape._recording)


def variable_type() -> type:
    """Return the class of variables that hold their value on one device."""
    from tensorflow.python.ops import resource_variable_ops

    kind: type = resource_variable_ops.BaseResourceVariable
    return kind


def variable_creation() -> Place:
    """Return the method that makes a variable from an initial value: `(variable, **options)`."""
    from tensorflow.python.ops.resource_variable_ops import ResourceVariable

    return ResourceVariable, "_init_from_args"
