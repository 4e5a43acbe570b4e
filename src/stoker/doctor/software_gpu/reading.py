"""Reading the software GPU: exact counts and bytes, and modelled times."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from stoker.doctor.software_gpu.native import CopiesStruct, DeviceReading, Reading
from stoker.errors import UsageError

_NS = 1e-9


@dataclass(frozen=True)
class Copies:
    """Copies in one direction; `seconds` is modelled."""

    count: int = 0
    bytes: int = 0
    seconds: float = 0.0

    def __add__(self, other: Copies) -> Copies:
        return Copies(self.count + other.count, self.bytes + other.bytes, self.seconds + other.seconds)


@dataclass(frozen=True)
class DeviceCounters:
    """One device, since it was enabled or last `reset`. Counts and bytes are exact, seconds are modelled.

    `host_wait_s` is how long the host stood still until the device had finished queued work; `host_copy_s`, how long it
    stood still while bytes moved. A wait costs the idle time after it; waiting itself loses nothing.
    """

    name: str
    h2d: Copies
    d2h: Copies
    d2d: Copies
    syncs: int
    launches: int
    clusters: int
    host_ops: int
    memory_in_use: int
    memory_peak: int
    memory_limit: int
    busy_s: float
    idle_s: float
    queued_s: float
    host_wait_s: float
    host_copy_s: float

    @property
    def busy(self) -> float:
        """The share of the modelled time in which the device computed."""
        total = self.busy_s + self.idle_s
        return self.busy_s / total if total > 0 else 0.0


@dataclass(frozen=True)
class Counters:
    """All devices. `wall_s` is the program's modelled time, `emulated_s` the real time taken out of it."""

    profile: str
    clock: str
    wall_s: float
    emulated_s: float
    devices: tuple[DeviceCounters, ...]

    @property
    def h2d(self) -> Copies:
        return sum((device.h2d for device in self.devices), Copies())

    @property
    def d2h(self) -> Copies:
        return sum((device.d2h for device in self.devices), Copies())

    @property
    def d2d(self) -> Copies:
        return sum((device.d2d for device in self.devices), Copies())

    @property
    def syncs(self) -> int:
        return sum(device.syncs for device in self.devices)

    @property
    def launches(self) -> int:
        return sum(device.launches for device in self.devices)

    @property
    def busy(self) -> float:
        """The mean share of the modelled time in which a device computed."""
        return sum(device.busy for device in self.devices) / len(self.devices)

    def summary(self) -> str:
        """Return a few lines for people."""
        lines = [
            f"software GPU, profile {self.profile}, modelled time {self.wall_s:.3f} s ({self.clock} clock)"
        ]
        for d in self.devices:
            lines.append(
                f"{d.name}: busy {d.busy:.1%}, {d.launches} launches, {d.syncs} syncs, "
                f"{d.h2d.count} copies in ({d.h2d.bytes:,} bytes), {d.d2h.count} out ({d.d2h.bytes:,}), "
                f"memory peak {d.memory_peak:,}, host waited {d.host_wait_s:.3f} s and "
                f"copied {d.host_copy_s:.3f} s"
            )
        return "\n".join(lines)


class Delta(NamedTuple):
    """The effect of one call, in the thread that made it. Times are on the virtual clock, in nanoseconds.

    The fields are those of `Delta` in plugin/counters.cc, in the same order.
    """

    syncs: int
    h2d_count: int
    h2d_bytes: int
    d2h_count: int
    d2h_bytes: int
    launches: int
    wait_ns: int
    copy_ns: int
    elapsed_ns: int
    emulated_ns: int


@dataclass
class _Attached:
    library: ctypes.PyDLL
    profile: str
    count: int
    memory: int
    clock: str
    origin_ns: int
    origin_emulated_ns: int = 0


_attached: _Attached | None = None


def attach(library: ctypes.PyDLL, profile: str, count: int, memory: int, clock: str) -> None:
    """Start to read from the plug-in; `enable` calls this once."""
    global _attached
    origin = int(library.stoker_gpu_now_ns())
    _attached = _Attached(library, profile, count, memory, clock, origin)


def _state() -> _Attached:
    if _attached is None:
        raise UsageError(
            "the software GPU is not enabled: call stoker.software_gpu.enable() before the first op"
        )
    return _attached


def now_ns() -> int:
    """Return the virtual time. The real clock shows `time.monotonic_ns()` less emulation, plus modelled waits."""
    return int(_state().library.stoker_gpu_now_ns())


def raw_clock() -> Callable[[], int]:
    """Return the virtual clock as a bare function, for code that reads it often."""
    clock: Callable[[], int] = _state().library.stoker_gpu_now_ns
    return clock


def queue_clock() -> Callable[[], int]:
    """Return a function for how much longer the devices have queued work, in nanoseconds of the virtual clock."""
    state = _state()
    readings = [DeviceReading() for _ in range(state.count)]
    pointers = [ctypes.byref(reading) for reading in readings]
    read = state.library.stoker_gpu_read_device

    def queued_ns() -> int:
        for ordinal, pointer in enumerate(pointers):
            read(ordinal, pointer)
        return max(reading.queued_ns for reading in readings)

    return queued_ns


def counters() -> Counters:
    """Return all counters."""
    state = _state()
    total = Reading()
    state.library.stoker_gpu_read(ctypes.addressof(total))
    wall = (total.now_ns - state.origin_ns) * _NS
    devices = tuple(_device(state, ordinal, wall) for ordinal in range(state.count))
    emulated = (total.emulated_ns - state.origin_emulated_ns) * _NS
    return Counters(state.profile, state.clock, wall, emulated, devices)


def reset() -> None:
    """Restart all counters and peaks, after the modelled host has waited for the modelled device."""
    state = _state()
    state.library.stoker_gpu_reset()
    if any(_raw(state, ordinal).started for ordinal in range(state.count)):
        from stoker.doctor.software_gpu import tensorflow_side

        tensorflow_side.reset_memory_peaks()
    total = Reading()
    state.library.stoker_gpu_read(ctypes.addressof(total))
    state.origin_ns, state.origin_emulated_ns = total.now_ns, total.emulated_ns


def _raw(state: _Attached, ordinal: int) -> DeviceReading:
    reading = DeviceReading()
    state.library.stoker_gpu_read_device(ordinal, ctypes.byref(reading))
    return reading


def _device(state: _Attached, ordinal: int, wall_s: float) -> DeviceCounters:
    raw = _raw(state, ordinal)
    in_use = peak = 0
    if raw.started:
        from stoker.doctor.software_gpu import tensorflow_side

        in_use, peak = tensorflow_side.memory_of(ordinal)
    counts = raw.counters
    busy = min(raw.busy_ns * _NS, wall_s)
    return DeviceCounters(
        name=f"/GPU:{ordinal}",
        h2d=_copies(counts.h2d),
        d2h=_copies(counts.d2h),
        d2d=_copies(counts.d2d),
        syncs=counts.syncs,
        launches=counts.launches,
        clusters=counts.clusters,
        host_ops=counts.host_ops,
        memory_in_use=in_use,
        memory_peak=peak,
        memory_limit=state.memory,
        busy_s=busy,
        idle_s=wall_s - busy,
        queued_s=raw.queued_ns * _NS,
        host_wait_s=counts.host_wait_ns * _NS,
        host_copy_s=counts.host_copy_ns * _NS,
    )


def _copies(raw: CopiesStruct) -> Copies:
    return Copies(raw.count, raw.bytes, raw.time_ns * _NS)


class Meter:
    """Measures what a call does to the device: `start()` before it, `stop()` after it, in the same thread.

    A meter, which probes use, counts only what the calling thread itself caused, so background copies do not blur the
    result. Each of the two calls takes well under a microsecond. A meter serves one call at a time: nested probes need
    one each.
    """

    __slots__ = ("_at", "_before", "_delta", "_delta_at", "_read", "_read_since", "_unpack")

    def __init__(self) -> None:
        words = struct.Struct(f"={len(Delta._fields)}q")
        self._before, self._delta = Reading(), ctypes.create_string_buffer(words.size)
        self._at, self._delta_at = ctypes.addressof(self._before), ctypes.addressof(self._delta)
        self._unpack = words.unpack_from
        library = _state().library
        self._read, self._read_since = library.stoker_gpu_read_thread, library.stoker_gpu_read_thread_since

    def start(self) -> None:
        """Remember the present counters."""
        self._read(self._at)

    def stop(self) -> Delta:
        """Return what happened since `start`."""
        self._read_since(self._at, self._delta_at)
        return Delta._make(self._unpack(self._delta))
