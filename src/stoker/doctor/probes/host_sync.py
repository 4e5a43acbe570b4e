"""Host syncs: every way a tensor's value reaches Python or NumPy.

All readers but one family go through `EagerTensor._numpy_internal`. NumPy functions and `memoryview` use the C buffer
protocol instead. `EagerTensor` has no attribute for that protocol, so the type's slot is replaced. Formatting a tensor
and iterating over one are reads with a cost of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from stoker import clock
from stoker.doctor.attach.buffer_slot import BufferPatch
from stoker.doctor.attach.sites import FRAMEWORK
from stoker.doctor.probes.parts.tallies import ReadsPart
from stoker.doctor.probes.probe import Growing, Probe
from stoker.doctor.probes.recorder import CHECKPOINT, PAUSED, PYTHON, SYNC, Recorder
from stoker.doctor.probes.steps import READS, Steps
from stoker.tf_internals import eager
from stoker.tf_internals.types import Tensor

T = TypeVar("T")
# The least time of a copy of n bytes from a GPU, to tell copying from waiting: PCIe 3 x16 in practice (12 GB/s) and a
# launch. No price depends on this, only the share of waiting in a read.
_COPY_LATENCY_NS = 10_000
_COPY_NS_PER_BYTE = 1 / 12
# A read as short as this waited for nothing.
_SHORT_NS = 20_000


class HostSync(Probe):
    """Counts, sizes and times reads of tensors, by the user's line."""

    name = "host sync"

    def __init__(self, recorder: Recorder, steps: Steps) -> None:
        super().__init__(recorder)
        self._steps = steps
        self._depth = 0

    def attach(self) -> None:
        tensor = eager.tensor_type()
        self.replace(*eager.tensor_read(), lambda f: self._reader(f, "numpy"), pausable=True)
        for name in ("__str__", "__repr__", "__format__"):
            self.replace(tensor, name, lambda f: self._reader(f, "format"), pausable=True)
        self.replace(tensor, "__iter__", self._iteration, pausable=True)
        self.replace(*eager.dlpack_export(), lambda f: self._reader(f, "dlpack"), pausable=True)
        buffer = BufferPatch(tensor, lambda f: self._reader(f, "buffer"))
        buffer.put_in()
        self.on_detach(buffer.take_out)
        self.let_pause(buffer.put_in, buffer.take_out)

    def pause(self) -> None:
        # A read waits for a device that runs beside the host, perhaps long, and that must be seen.
        if not self._may_wait():
            super().pause()

    def list_growing(self) -> Iterable[Growing]:
        return self.list_growing_tallies("sync")

    def measure(self, ended: bool) -> ReadsPart:
        return ReadsPart(self.recorder.tallies_of("sync"))

    def _reader(self, original: Callable[..., T], how: str) -> Callable[..., T]:
        def read(tensor: Tensor, *args: object) -> T:
            if not self.active:
                return original(tensor, *args)
            if not self.recorder.on_main_thread():
                return self._read_on_other_thread(original, tensor, args, how)
            if self._depth:
                # A read inside a read, such as a format that calls numpy.
                return original(tensor, *args)
            if self.recorder.top == PAUSED and not self.recorder.has_ended_pause():
                return self._read_in_pause(original, tensor, args, how)
            started = self._begin()
            try:
                value = original(tensor, *args)
            except BaseException:
                # Nothing was read. NumPy, for one, tries the buffer first and falls back.
                self.recorder.leave()
                self._depth -= 1
                raise
            self._end(tensor, started, how, getattr(value, "nbytes", -1))
            return value

        return read

    def _iteration(self, original: Callable[[Tensor], Iterator[T]]) -> Callable[[Tensor], Iterator[T]]:
        def iterate(tensor: Tensor) -> Iterator[T]:
            elements = original(tensor)
            if not self.active or not self.recorder.on_main_thread() or self.recorder.top == PAUSED:
                yield from elements
                return
            first = True
            while True:
                started = self._begin()
                try:
                    element = next(elements)
                except StopIteration:
                    return
                finally:
                    self._end(tensor if first else None, started, "iteration")
                first = False
                yield element

        return iterate

    def _begin(self) -> int:
        self._depth += 1
        if self.recorder.meter is not None:
            self.recorder.meter.start()
        # A saver's reads count as saving.
        return self.recorder.enter(CHECKPOINT if self.recorder.top == CHECKPOINT else SYNC)

    def _end(self, tensor: Tensor | None, started: int, how: str, size: int = -1) -> None:
        ended = self.recorder.leave()
        self._depth -= 1
        self.call_safely(self._count, tensor, started, ended, how, size)

    def _read_in_pause(
        self, original: Callable[..., T], tensor: Tensor, args: tuple[object, ...], how: str
    ) -> T:
        """Read while measuring pauses. Only a long read is measured."""
        started = clock.now_ns()
        value = original(tensor, *args)
        ended = clock.now_ns()
        if ended - started > self.recorder.heavy_ns:
            self.recorder.charge(SYNC, started, ended)
            self.call_safely(self._count, tensor, started, ended, how)
        return value

    @staticmethod
    def _may_wait() -> bool:
        """Return whether work may still be queued when an op returns."""
        import tensorflow as tf

        return eager.is_async() or bool(tf.config.list_logical_devices("GPU"))

    def _read_on_other_thread(
        self, original: Callable[..., T], tensor: Tensor, args: tuple[object, ...], how: str
    ) -> T:
        """Tally a read whose time goes to no account."""
        started = clock.now_ns()
        try:
            return original(tensor, *args)
        finally:
            self.call_safely(self._count, tensor, started, clock.now_ns(), how)

    def _count(self, tensor: Tensor | None, started: int, ended: int, how: str, size: int = -1) -> None:
        """Put a read on the books. `size` is the value's size if known: asking the tensor takes longer."""
        recorder = self.recorder
        wait = self._wait(tensor, ended - started)
        if wait is None:
            return
        # Without the wait, the device would have had work during the gap that followed the last sync.
        gap = max(0, recorder.first_dispatch_ns - recorder.last_sync_end_ns)
        recorder.last_sync_end_ns = ended
        recorder.first_dispatch_ns = 0
        if wait and recorder.queued is None:
            self._steps.mark_done(ended)
        key, _ = recorder.sites.caller(nearer_than=FRAMEWORK)
        if key is None:
            return
        if recorder.window is not None and recorder.on_main_thread():
            recorder.window.label(started, SYNC, key, how, wait)
        tally = recorder.tally("sync", key)
        if not tally.count and tensor is not None:
            shape = [int(dimension) for dimension in tensor.shape]
            tally.detail = {"how": how, "shape": shape, "dtype": str(tensor.dtype.name)}
            library = recorder.sites.through()
            if library:
                tally.detail["through"] = library
        recorder.date(tally, ended)
        tally.count += tensor is not None
        tally.ns += ended - started
        tally.wait_ns += wait
        tally.lost_ns += min(gap, wait) + (ended - started - wait)
        if tensor is not None:
            tally.bytes += nbytes(tensor) if size < 0 else size
            if recorder.top == PYTHON and not self._steps.keras_depth and recorder.on_main_thread():
                self._steps.event(READS, key, ended)

    def _wait(self, tensor: Tensor | None, elapsed: int) -> int | None:
        """Return the part of a read spent waiting for the device, not copying; None if the device was not involved."""
        meter = self.recorder.meter
        if meter is not None and self.recorder.on_main_thread():
            did = meter.stop()
            return min(elapsed, did.wait_ns) if did.syncs or did.d2h_count else None
        if tensor is None or elapsed < _SHORT_NS:
            return 0
        if "GPU" in tensor.backing_device:
            return max(0, elapsed - _COPY_LATENCY_NS - int(nbytes(tensor) * _COPY_NS_PER_BYTE))
        # On a CPU, a read is a view. Only the wait for an asynchronous executor takes time.
        return elapsed if eager.is_async() else 0


def nbytes(tensor: Tensor) -> int:
    """Return the size of a tensor's value."""
    size = 1
    for dimension in tensor.shape:
        size *= int(dimension)
    return int(size * max(1, tensor.dtype.size or 1))
