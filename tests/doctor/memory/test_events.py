"""Reading allocations from what the profiler exports."""

from __future__ import annotations

import pytest

from stoker.doctor.memory.events import MARK, read_events
from stoker.tf_internals import profiler
from stoker.tf_internals.types import ProtoMessage

pytest.importorskip("tensorflow")


class Space:
    """An XSpace as the profiler writes it, with one plane."""

    def __init__(self) -> None:
        self.space = profiler.space_parser()(b"")
        self._plane = self.space.planes.add(name="/host:CPU")
        self._names: dict[str, int] = {}
        self._threads: dict[str, ProtoMessage] = {}

    def add(self, thread: str, name: str, at_ns: int, for_ns: int = 0, **stats: int | str | float) -> None:
        line = self._threads.get(thread)
        if line is None:
            line = self._threads[thread] = self._plane.lines.add(name=thread, timestamp_ns=1000)
        event = line.events.add(metadata_id=self._number(name, self._plane.event_metadata))
        event.offset_ps, event.duration_ps = (at_ns - 1000) * 1000, for_ns * 1000
        for key, value in stats.items():
            stat = event.stats.add(metadata_id=self._number(key, self._plane.stat_metadata))
            if isinstance(value, str):
                # Text that occurs often is kept once, and referred to.
                stat.ref_value = self._number(value, self._plane.stat_metadata)
            elif isinstance(value, float):
                stat.double_value = value
            else:
                stat.int64_value = value

    def _number(self, name: str, table: ProtoMessage) -> int:
        number = self._names.setdefault(name, len(self._names) + 1)
        table[number].id, table[number].name = number, name
        return number


def allocation(
    space: Space, thread: str, at_ns: int, allocator: str = "GPU_1_bfc", op: str = "MatMul"
) -> None:
    space.add(
        thread,
        "MemoryAllocation",
        at_ns,
        allocator_name=allocator,
        allocation_bytes=512,
        bytes_allocated=2048,
        bytes_available=100,
        addr=7,
        fragmentation=0.5,
        tf_op=op,
        region_type="output",
        data_type=1,
        shape="[8,16]",
    )


def test_an_allocation_has_its_op_its_shape_and_the_place_that_ran_it() -> None:
    space = Space()
    space.add("python", f"{MARK}0", 2000, 1000)
    space.add("python", f"{MARK}3", 2200, 300)
    allocation(space, "python", 2300)
    allocation(space, "python", 2700)
    allocation(space, "tf_Compute/1", 2400, op="dense/MatMul")
    allocation(space, "python", 9000)
    allocation(space, "python", 2350, allocator="mklcpu")
    space.add("python", "SomethingElse", 2000)
    found = read_events(space.space)
    assert list(found) == ["/GPU:1"]
    events = found["/GPU:1"]
    assert [(event.at_ns, event.mark, event.call) for event in events] == [
        (2300, 3, 3),
        (2400, -1, 3),
        (2700, 0, 0),
        (9000, -1, -1),
    ]
    first = events[0]
    assert (first.bytes, first.in_use, first.available, first.address) == (512, 2048, 100, 7)
    assert (first.op, first.region, first.shape, first.dtype, first.fragmentation) == (
        "MatMul",
        "output",
        "[8,16]",
        1,
        0.5,
    )


def test_the_software_gpus_allocator_is_a_devices_and_deallocations_have_no_op() -> None:
    space = Space()
    space.add(
        "t", "MemoryDeallocation", 3000, allocator_name="PluggableDevice_0_bfc", allocation_bytes=256, addr=1
    )
    (event,) = read_events(space.space)["/GPU:0"]
    assert (event.is_allocation, event.op, event.bytes) == (False, "", 256)
