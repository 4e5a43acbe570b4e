"""The memory book: windows of the profiler that show every allocation with its owner.

A window belongs to `ProfilerWindows`, which decides when one is due and pays for it from the same budget. Between
windows, this probe only notes the lines that make layers, optimizers, variables and large tensors.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from stoker.doctor.attach.frames import innermost_line
from stoker.doctor.memory.births import LARGE_BYTES, Births, Scopes
from stoker.doctor.memory.book import book_of_holdings, raise_run_peak
from stoker.doctor.memory.exhausted import describe_failure, error_texts, read_refusal
from stoker.doctor.memory.inventory import Inventory, refresh_names, take_inventory
from stoker.doctor.memory.makers import MakerHooks
from stoker.doctor.memory.owners import EagerPlaces, Owner, Owners
from stoker.doctor.memory.validation import ValidationWatch
from stoker.doctor.memory.watching import read_books
from stoker.doctor.probes.device import DeviceProbe
from stoker.doctor.probes.eager_ops import EagerOps
from stoker.doctor.probes.parts.memory import MemoryPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import TRACE, Recorder
from stoker.doctor.probes.steps import Steps
from stoker.records import DeviceMemory, FailedAllocation
from stoker.tf_internals import profiler
from stoker.tf_internals.types import Tensor, TensorLike

# How many ticks of the program a window is open for, and for how long at most. The slow software GPU has a longer
# limit, which starts anew whenever something happens.
_TICKS = 3
_MAX_WINDOW_S, _MAX_EMULATED_S = 1.5, 8.0
# How long the graph of the first step may take to build, and how long a window may take to read.
_MAX_TRACE_S, _MAX_READ_S = 120.0, 20.0
_FIRST_OPS = 20
_LOOK_S = 0.01
# A peak this many times as high as the last one is worth a window at once, a few times in a run.
_HIGHER = 1.01
_MAX_EXTRA = 8


class MemoryBookProbe(Probe):
    """Keeps, for each device, the book of the window with the highest peak."""

    name = "memory book"

    def __init__(self, recorder: Recorder, steps: Steps, eager: EagerOps, device: DeviceProbe) -> None:
        super().__init__(recorder)
        self._steps, self._eager, self._device = steps, eager, device
        self._births, self._scopes = Births(), Scopes()
        self._hooks = MakerHooks(recorder.sites, self._births, self._scopes, self._call_if_active)
        self._books: dict[str, DeviceMemory] = {}
        # The books of the window around the first step, which makes variables. They count only if no other comes.
        self._first_books: dict[str, DeviceMemory] = {}
        self._failed: FailedAllocation | None = None
        self._validation = ValidationWatch()
        self._tried_first = False
        # Set while no window is open and none is being read.
        self._idle = threading.Event()
        self._idle.set()
        self._has_keras = False
        self._extra = 0
        # The highest peak of any device at the end of the last window.
        self._seen_peak = 0
        self.windows = 0

    def attach(self) -> None:
        self._parse = profiler.space_parser()
        for place, wrap in self._hooks.for_tensorflow():
            self.replace(*place, wrap)
        self.on_detach(self._births.forget)

    def attach_to_keras(self) -> None:
        self._has_keras = True
        for place, wrap in self._hooks.for_keras():
            self.replace(*place, wrap)

    def measure(self, ended: bool) -> MemoryPart:
        books = {**self._first_books, **self._books}
        peaks = self._validation.peaks(self._peaks()) if self.has_device else []
        return MemoryPart(list(books.values()), self._failed, peaks)

    @property
    def has_device(self) -> bool:
        """Whether there is a device whose memory is counted."""
        return self.active and self._device.kind != "CPU"

    def is_urgent(self) -> bool:
        """Return whether more memory is in use than any window has seen, and another window may show whose."""
        peak = self._device.gpu_memory_peak
        return bool(self._books) and self._extra < _MAX_EXTRA and peak > self._seen_peak * _HIGHER

    def wants_first(self) -> bool:
        """Return whether the program is about to make its first step, in which memory often runs out."""
        begins = self.recorder.top == TRACE or self._eager.count > _FIRST_OPS
        return self.has_device and not self._tried_first and not self.windows and begins

    def take(self, record: Callable[[Callable[[threading.Event], None]], bytes | None]) -> None:
        """Take a window and keep its books. `record` opens it, calls what waits, and returns the exported events."""
        is_first = self.wants_first()
        self._tried_first = True
        self._extra += self.is_urgent()
        self._idle.clear()
        try:
            self._take(record, is_first)
        finally:
            self._idle.set()

    def _take(
        self, record: Callable[[Callable[[threading.Event], None]], bytes | None], is_first: bool
    ) -> None:
        inventory = take_inventory(self._births, self._has_keras)

        def wait(interrupted: threading.Event) -> None:
            self._wait(interrupted)
            inventory.end_window()

        places = EagerPlaces(self.recorder.sites)
        marks = self._hooks.marks(places)
        for mark in marks:
            mark.put_in()
        try:
            data = record(wait)
        finally:
            for mark in reversed(marks):
                mark.take_out()
        if data is not None:
            if is_first:
                refresh_names(inventory, self._has_keras)
            self._keep(data, inventory, places, self._first_books if is_first else self._books)
            self.windows += not is_first
            self._seen_peak = self._device.gpu_memory_peak

    def note_failure(self, error: BaseException, interrupt: Callable[[], None]) -> None:
        """Keep what was in memory when the program ends because memory ran out. `interrupt` ends an open window."""
        refusal = next(filter(None, map(read_refusal, error_texts(error))), None)
        if refusal is None or not self.has_device:
            return
        interrupt()
        self._idle.wait(_MAX_READ_S)
        inventory = take_inventory(self._births, self._has_keras)
        in_use, capacity = self._usage(refusal.device)
        now = book_of_holdings(refusal.device, inventory.holdings(refusal.device), in_use, capacity)
        seen = self._books.get(refusal.device) or self._first_books.get(refusal.device)
        book = seen if seen is not None and seen.peak_bytes >= now.peak_bytes else now
        self._books[refusal.device] = book
        owners = Owners(inventory, [], self.recorder.sites, self._births, self._scopes, ())
        owner = owners.owner_of_op(refusal.op) if refusal.op else Owner("other")
        site = innermost_line(error.__traceback__, self.recorder.sites)
        self._failed = describe_failure(refusal, owner, site, book)

    def _usage(self, device: str) -> tuple[int, int]:
        """Return the bytes in use on a device, and its capacity."""
        in_use = self._count_bytes(device, "current")
        rows = self._device.rows
        number = int(device.rpartition(":")[2])
        limit = int(rows[number].get("memory_limit", 0)) if number < len(rows) else 0
        books = self._books.get(device) or self._first_books.get(device)
        return in_use, limit or (books.capacity_bytes if books is not None else in_use)

    def note_evaluation(self, begins: bool) -> None:
        """Note that an evaluation begins or ends. One before the first training step shows nothing about training."""
        if self.has_device and self._steps.total():
            self.call_safely(self._note_peaks, begins)

    def _note_peaks(self, begins: bool) -> None:
        if begins:
            self._validation.begin(self._peaks(), self._peaks("current"))
        else:
            self._validation.end(self._peaks(), self.recorder.sites.caller()[0])

    def _peaks(self, kind: str = "peak") -> dict[str, int]:
        devices = map("/GPU:{}".format, range(self._device.count))
        return {device: self._count_bytes(device, kind) for device in devices}

    def note_tensor(self, tensor: Tensor, value: TensorLike, size: int) -> None:
        """Remember the line that makes a large tensor from host data."""
        if size >= LARGE_BYTES and self.has_device:
            self._births.note(tensor, self.recorder.sites.caller()[0])

    def _wait(self, interrupted: threading.Event) -> None:
        """Wait until the program has made a few steps."""
        emulated = self.recorder.meter is not None
        longest = _MAX_EMULATED_S if emulated else _MAX_WINDOW_S
        last = time.monotonic() + _MAX_TRACE_S
        until, seen = time.monotonic() + longest, (self._steps.total(), self._read_bytes_in_use())
        ticks = 0
        while ticks < _TICKS and time.monotonic() < min(until, last):
            if interrupted.wait(_LOOK_S):
                return
            now = (self._steps.total(), self._read_bytes_in_use())
            # Several steps at once were made before, and the loop has only now been recognised.
            ticks += now[0] > seen[0]
            # The program makes progress as long as it builds a graph, makes steps or allocates memory.
            if self.recorder.top == TRACE or (emulated and now != seen):
                until = time.monotonic() + longest
            seen = now

    def _read_bytes_in_use(self) -> int:
        """Return the bytes in use on the software GPUs now."""
        if self.recorder.meter is None:
            return 0
        # Imported here: most programs have no software GPU, and would have to wait for this at their start.
        from stoker.doctor import software_gpu

        return sum(device.memory_in_use for device in software_gpu.counters().devices)

    def _keep(
        self, data: bytes, inventory: Inventory, places: EagerPlaces, books: dict[str, DeviceMemory]
    ) -> None:
        found = read_books(
            self._parse(data), inventory, places.places, self.recorder.sites, self._births, self._scopes
        )
        for device, book in found.items():
            best = books.get(device)
            if best is None or book.peak_bytes > best.peak_bytes:
                books[device] = raise_run_peak(book, self._peak_of(device))

    def _peak_of(self, device: str) -> int:
        """Return the highest peak of a device so far."""
        return self._count_bytes(device, "peak")

    def _count_bytes(self, device: str, kind: str) -> int:
        import tensorflow as tf

        return int(tf.config.experimental.get_memory_info(device[1:])[kind])

    def _call_if_active(self, measure: Callable[..., Any], *args: object) -> Any:
        """Call code of ours while this probe is in use. A failure in it disables the probe."""
        return self.call_safely(measure, *args) if self.active else None
