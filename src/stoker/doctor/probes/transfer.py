"""Host to device: NumPy arrays and lists that become tensors, wherever the program requests the conversion.

`tf.constant`, `tf.convert_to_tensor`, an array passed to an op or to a tf.function all end in
`convert_to_eager_tensor`. Scalars are not counted: they are constants of the program, not its data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stoker import clock
from stoker.doctor.attach.sites import INTERNAL, SiteKey
from stoker.doctor.probes.parts.tallies import CopiesPart
from stoker.doctor.probes.probe import Growing, Probe
from stoker.doctor.probes.recorder import PAUSED, PYTHON, TRANSFER, Recorder
from stoker.doctor.probes.steps import READS, Steps
from stoker.tf_internals import eager
from stoker.tf_internals.types import Tensor, TensorLike

# The function that converts for TensorFlow: takes the value, its context and the requested dtype.
_Convert = Callable[[TensorLike, object, object], Tensor]
# Shapes, axes and indices are short lists; a batch is not.
_MIN_LIST = 32
_MIN_BYTES = 64


def data_size(value: TensorLike, array_type: type) -> int | None:
    """Return the bytes of host data about to be converted; 0 if unknown yet, and None if it is a mere constant."""
    if isinstance(value, array_type):
        size = int(getattr(value, "nbytes", 0))
        return size if size >= _MIN_BYTES else None
    if type(value) not in (list, tuple) or not value:
        return None
    first = value[0]
    if isinstance(first, array_type):
        # A list of observations, as agents keep them.
        return 0 if len(value) * int(getattr(first, "nbytes", 0)) >= _MIN_BYTES else None
    rows = len(first) if type(first) in (list, tuple) else 1
    return 0 if len(value) * rows >= _MIN_LIST else None


class Transfer(Probe):
    """Counts, sizes and times conversions of host data, by the user's line."""

    name = "host-to-device"

    def __init__(self, recorder: Recorder, steps: Steps) -> None:
        super().__init__(recorder)
        self._steps = steps
        # The id of the first array converted at a site.
        self._first: dict[SiteKey, int] = {}
        # Functions to call with each tensor made from host data, the data, and its bytes if known.
        self.on_tensor: list[Callable[[Tensor, TensorLike, int], None]] = []

    def attach(self) -> None:
        import numpy as np

        self._array_type = np.ndarray
        self.replace(*eager.host_conversion(), self._conversion, pausable=True)

    def list_growing(self) -> Iterable[Growing]:
        return self.list_growing_tallies("transfer")

    def measure(self, ended: bool) -> CopiesPart:
        return CopiesPart(self.recorder.tallies_of("transfer"))

    def _conversion(self, original: _Convert) -> Callable[..., Tensor]:
        recorder = self.recorder

        def convert(value: TensorLike, ctx: object, dtype: object = None) -> Tensor:
            size = data_size(value, self._array_type)
            if size is None or not self.active:
                return original(value, ctx, dtype)
            if recorder.top == PAUSED and not recorder.has_ended_pause():
                return original(value, ctx, dtype)
            on_books = recorder.on_main_thread()
            started = recorder.enter(TRANSFER) if on_books else clock.now_ns()
            tensor = None
            try:
                tensor = original(value, ctx, dtype)
                return tensor
            finally:
                ended = recorder.leave() if on_books else clock.now_ns()
                self.call_safely(self._count, value, tensor, size, started, ended, on_books)

        return convert

    def _count(
        self, value: TensorLike, tensor: Tensor, size: int, started: int, ended: int, on_books: bool
    ) -> None:
        elapsed = ended - started
        if tensor is not None:
            for call in self.on_tensor:
                call(tensor, value, size)
        key, _ = self.recorder.sites.caller(nearer_than=INTERNAL)
        if key is None:
            return
        if self.recorder.window is not None and on_books:
            self.recorder.window.label(started, TRANSFER, key, type(value).__name__)
        tally = self.recorder.tally("transfer", key)
        if not tally.count:
            tally.detail = {
                "type": type(value).__name__,
                "shape": [int(n) for n in getattr(value, "shape", (len(value),))],
                "dtype": str(getattr(value, "dtype", "")),
            }
            self._first[key] = id(value)
        self.recorder.date(tally, ended)
        if not size and tensor is not None:
            size = int(tensor.dtype.size) * int(tensor.shape.num_elements() or 0)
        # Another array may have the same id later, but hardly every time.
        tally.same += self._first.get(key) == id(value)
        tally.count += 1
        tally.ns += elapsed
        tally.lost_ns += elapsed
        tally.bytes += size
        # What a compiled call or a layer converts is part of that event.
        if on_books and self.recorder.top == PYTHON and not self._steps.keras_depth:
            self._steps.event(READS, key, ended)
