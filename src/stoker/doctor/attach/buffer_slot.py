"""The buffer slot of `EagerTensor`: how NumPy and `memoryview` read a tensor without calling a method of it.

The type has no attribute for the protocol, so `tp_as_buffer->bf_getbuffer` itself is replaced, through ctypes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

_PROTOTYPE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)

# The slot holds a bare address, and a reader may be inside a wrapper at any time. So wrappers are never freed.
_wrappers: list[object] = []


class BufferPatch:
    """A wrapper for the slot: made once, put in as often as needed.

    A ctypes callback cannot raise. If TensorFlow raises an error, or the wrapper raises one of `refusals`, the reader
    gets -1 ("no buffer"): NumPy then tries `__array__`, and `memoryview` fails.
    """

    def __init__(
        self,
        tensor_type: type,
        wrap: Callable[[Callable[..., int]], Callable[..., int]],
        refusals: tuple[type[BaseException], ...] = (),
    ) -> None:
        self._is_in = False
        self._slot = buffer_slot(tensor_type)
        self._address = self._slot.value
        self._below = _PROTOTYPE(self._address or 0)
        read = wrap(lambda tensor, view, flags: self._below(tensor, view, flags))
        quiet: tuple[type[BaseException], ...] = (BufferError, RuntimeError, ValueError, *refusals)

        def get_buffer(tensor: object, view: int, flags: int) -> int:
            try:
                return int(read(tensor, view, flags))
            except quiet:
                return -1

        self._wrapper = _PROTOTYPE(get_buffer)
        self._ours = ctypes.cast(self._wrapper, ctypes.c_void_p).value
        _wrappers.append(self._wrapper)

    def put_in(self) -> None:
        """Wrap the slot's current function, unless our wrapper is still there, below someone else's."""
        address = self._slot.value
        if address is None:
            raise RuntimeError("EagerTensor has no buffer slot")
        if not self._is_in:
            self._address, self._below = address, _PROTOTYPE(address)
            self._slot.value = self._ours
            self._is_in = True

    def take_out(self) -> None:
        """Restore the slot. If someone has wrapped our wrapper since, it stays below theirs."""
        if self._slot.value == self._ours:
            self._slot.value = self._address
            self._is_in = False


def buffer_slot(tensor_type: type) -> ctypes.c_void_p:
    """Return the memory of `type->tp_as_buffer->bf_getbuffer`.

    The layout of PyTypeObject is fixed within a minor version: a head of three words, followed by the fields below.
    """
    pointer = ctypes.sizeof(ctypes.c_void_p)
    fields = [
        *("name", "basicsize", "itemsize", "dealloc", "vectorcall_offset", "getattr", "setattr", "as_async"),
        *("repr", "as_number", "as_sequence", "as_mapping", "hash", "call", "str", "getattro", "setattro"),
        "as_buffer",
    ]
    offset = (3 + fields.index("as_buffer")) * pointer
    as_buffer = ctypes.c_void_p.from_address(id(tensor_type) + offset).value
    if not as_buffer:
        raise RuntimeError("EagerTensor does not export a buffer")
    return ctypes.c_void_p.from_address(as_buffer)
