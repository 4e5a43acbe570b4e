"""Where a tensor lives, and, on a machine without an accelerator, where it would live on one.

With an accelerator, TensorFlow knows. Without one, everything is on the CPU and the answer is worked out: 32-bit
integers and strings stay in host memory, and so do values made under `tf.device("CPU")`, by an op that has no GPU
kernel, or by an input pipeline. What was pinned before the guard began is unknown.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

from stoker.doctor.software_gpu.build import KERNEL_TABLE
from stoker.tf_internals import eager, graphs
from stoker.tf_internals.iterators import NEXT_ELEMENT_OPS

# Ops whose output is where their input is. Copying a device's value to the host by `identity` counts as reading it.
_SAME_PLACE = frozenset({"ReadVariableOp", "Identity", "OptionalGetValue", "OptionalHasValue"})
_DEVICE, _HOST, _OF_INPUT = range(3)


class WeakIds:
    """A set of tensors, which cannot be hashed, held by weak references."""

    def __init__(self) -> None:
        self._known: dict[int, weakref.ref[Any]] = {}

    def add(self, tensor: Any) -> None:
        """Remember a tensor for as long as it lives."""
        number, known = id(tensor), self._known
        known[number] = weakref.ref(tensor, lambda _: known.pop(number, None))

    def __contains__(self, tensor: Any) -> bool:
        found = self._known.get(id(tensor))
        return found is not None and found() is tensor

    def clear(self) -> None:
        """Forget all tensors."""
        self._known = {}


class Placement:
    """Tells the device's tensors from the host's."""

    def __init__(self) -> None:
        import tensorflow as tf

        self._has_strategy = tf.distribute.has_strategy
        self._logical_devices = tf.config.list_logical_devices
        self._eager_tensor = eager.tensor_type()
        self._thread = eager.thread_state()
        self._never = {tf.string, tf.resource, tf.variant}
        self._int32 = tf.int32
        self._on_host = WeakIds()
        self._accelerated: bool | None = None
        self._homes: dict[str, int] = {}

    def begin(self) -> None:
        """Begin, when the first guard opens. Nothing is known about tensors made earlier."""
        self._on_host.clear()
        self._thread = eager.thread_state()

    def is_accelerated(self) -> bool:
        """Return whether TensorFlow has a device other than the CPU.

        A tensor exists by now, so TensorFlow has started.
        """
        if self._accelerated is None:
            devices = self._logical_devices()
            self._accelerated = any(d.device_type not in ("CPU", "XLA_CPU") for d in devices)
        return self._accelerated

    def on_device(self, tensor: Any) -> bool:
        """Return whether the value is, or would be, in the accelerator's memory."""
        if tensor.dtype in self._never:
            return False
        if self.is_accelerated():
            return "device:CPU:" not in tensor.backing_device
        return tensor.dtype != self._int32 and tensor not in self._on_host

    def note_made(self, call: tuple[Any, ...], result: Any) -> None:
        """Note host tensors among those that an eager op made. `call` is context, op, name, inputs and attributes."""
        if self._accelerated or self.is_accelerated():
            return
        op = call[1]
        home = self._homes.get(op)
        if home is None:
            home = self._homes[op] = _home(op)
        if home == _OF_INPUT:
            if call[3] in self._on_host:
                self.mark(result)
        elif home == _HOST or self.is_pinned_to_host():
            self.mark(result)

    def is_pinned_to_host(self) -> bool:
        """Return whether the program is inside a `tf.device` scope of the CPU. A strategy's own scopes do not count."""
        name = self._thread.device_name
        return bool(name) and "CPU" in name and not self._has_strategy()

    def mark(self, result: Any) -> None:
        """Remember that these tensors are the host's."""
        for tensor in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(tensor, self._eager_tensor):
                self._on_host.add(tensor)


def _home(op: str) -> int:
    """Return where an op leaves its result by default."""
    if op in _SAME_PLACE:
        return _OF_INPUT
    # An iterator's elements are where it is: on the host.
    return _DEVICE if op not in NEXT_ELEMENT_OPS and has_gpu_kernel(op) else _HOST


def has_gpu_kernel(op: str) -> bool:
    """Return whether a TensorFlow that is built for GPUs would run this op on one."""
    return op in _table() or _registered_for_gpu(op)


@functools.cache
def _table() -> frozenset[str]:
    lines = KERNEL_TABLE.read_text(encoding="utf-8").splitlines()
    return frozenset(line.split(" ", 1)[0] for line in lines if line and not line.startswith("#"))


def _registered_for_gpu(op: str) -> bool:
    """Return whether this build has a GPU kernel for the op.

    The table lists only kernels that a build without CUDA lacks.
    """
    return any(device in ("GPU", "DEFAULT") for device in graphs.kernel_devices(op))
