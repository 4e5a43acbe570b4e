"""Allocations and deallocations on the devices, read from a window of TensorFlow's profiler."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from stoker.doctor.attach.gently import gently
from stoker.tf_internals.types import ProtoMessage

# The prefix of a mark around an eager op or a call. The number of its place follows.
MARK = "stoker-place:"
_ALLOCATION, _DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"
# Allocators of devices: `GPU_0_bfc`, and `PluggableDevice_0_bfc` for the software GPU. Others are the host's.
_DEVICE = re.compile(r"(?:GPU|PluggableDevice)_(\d+)_bfc")
# The thread of a program's Python code, as the profiler names it.
_PYTHON = "python"


class MemoryEvent(NamedTuple):
    """One allocation or deallocation on a device."""

    at_ns: int
    is_allocation: bool
    address: int
    # The allocated bytes, which may be more than requested; and all bytes in use after the event.
    bytes: int
    in_use: int
    available: int
    # The share of the free memory that lies outside the largest free piece.
    fragmentation: float
    # The name of a graph's node, or the kind of an eager op.
    op: str = ""
    # One of: output, temp, persist, dynamic.
    region: str = ""
    dtype: int = 0
    shape: str = ""
    # The number of the place whose eager op allocates in the same thread; -1 if there is none.
    mark: int = -1
    # The number of the place whose call is running in the main thread; -1 if there is none.
    call: int = -1
    # The requested bytes; the allocator may give more.
    requested: int = 0


class _Mark(NamedTuple):
    start: int
    end: int
    place: int


def read_events(space: ProtoMessage) -> dict[str, list[MemoryEvent]]:
    """Return the events of each device in order of time, by names such as `/GPU:0`."""
    found: dict[str, list[MemoryEvent]] = {}
    pending: list[tuple[str, str, MemoryEvent]] = []
    marks: dict[str, list[_Mark]] = {}
    for plane in space.planes:
        kinds = {key: value.name for key, value in plane.event_metadata.items()}
        wanted = {key for key, name in kinds.items() if name in (_ALLOCATION, _DEALLOCATION)}
        places = {key: int(name[len(MARK) :]) for key, name in kinds.items() if name.startswith(MARK)}
        if not wanted:
            continue
        names = {key: value.name for key, value in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in gently(line.events):
                start = line.timestamp_ns + event.offset_ps // 1000
                if event.metadata_id in places:
                    end = start + event.duration_ps // 1000
                    marks.setdefault(line.name, []).append(_Mark(start, end, places[event.metadata_id]))
                elif event.metadata_id in wanted:
                    stats = dict(_read_stats(event, names))
                    device = _DEVICE.fullmatch(str(stats.get("allocator_name", "")))
                    if device is not None:
                        made = _make_event(start, kinds[event.metadata_id], stats)
                        pending.append((f"/GPU:{device[1]}", line.name, made))
    for thread in marks.values():
        thread.sort()
    for name, thread_name, event in sorted(pending, key=lambda item: item[2].at_ns):
        own = _open_mark(marks.get(thread_name, ()), event.at_ns)
        call = own if own >= 0 else _open_mark(marks.get(_PYTHON, ()), event.at_ns)
        found.setdefault(name, []).append(event._replace(mark=own, call=call))
    return found


def _read_stats(event: ProtoMessage, names: dict[int, str]) -> Iterator[tuple[str, object]]:
    for stat in event.stats:
        kind = stat.WhichOneof("value")
        value = getattr(stat, kind)
        yield names[stat.metadata_id], names[value] if kind == "ref_value" else value


def _make_event(at_ns: int, kind: str, stats: dict[str, object]) -> MemoryEvent:
    def number(name: str) -> int:
        return int(str(stats.get(name, 0)))

    return MemoryEvent(
        at_ns=at_ns,
        is_allocation=kind == _ALLOCATION,
        address=number("addr"),
        bytes=number("allocation_bytes"),
        in_use=number("bytes_allocated"),
        available=number("bytes_available"),
        fragmentation=float(str(stats.get("fragmentation", 0.0))),
        op=str(stats.get("tf_op", "")),
        region=str(stats.get("region_type", "")),
        dtype=number("data_type"),
        shape=str(stats.get("shape", "")),
        requested=number("requested_bytes"),
    )


def _open_mark(marks: list[_Mark] | tuple[_Mark, ...], at_ns: int) -> int:
    """Return the place of a thread's innermost mark that is open at a moment. The marks are in order of their start."""
    place = bisect_right(marks, (at_ns, 1 << 63, 0))
    # Marks nest only a few deep, such as an op inside the call of a function.
    for mark in reversed(marks[max(0, place - 8) : place]):
        if mark.end >= at_ns:
            return mark.place
    return -1
