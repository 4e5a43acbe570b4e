"""The book of a device, from events as the profiler gives them."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.doctor.memory.book import MAX_OWNERS, make_book
from stoker.doctor.memory.events import MemoryEvent
from stoker.doctor.memory.inventory import Holding
from stoker.doctor.memory.owners import Owner
from stoker.records import ROLES, DeviceMemory

LIMIT = 10_000


class Device:
    """A device's memory, and the events that the profiler would report."""

    def __init__(self, in_use: int = 0) -> None:
        self.events: list[MemoryEvent] = []
        self._in_use, self._now = in_use, 0

    def take(self, address: int, size: int, op: str, shape: str = "") -> None:
        self._in_use += size
        self._add(True, address, size, op, shape)

    def give(self, address: int, size: int) -> None:
        self._in_use -= size
        self._add(False, address, size, "")

    def _add(self, is_allocation: bool, address: int, size: int, op: str, shape: str = "") -> None:
        self._now += 1_000_000
        rest = LIMIT - self._in_use
        event = MemoryEvent(
            self._now, is_allocation, address, size, self._in_use, rest, 0.25, op, shape=shape
        )
        self.events.append(event)


def holding(role: str, size: int, layer: str = "", shape: str = "[8]") -> Holding:
    return Holding("/GPU:0", role, size, shape, "float32", "kernel", layer, ("train.py", 3, "<module>"))


def book(events: Sequence[MemoryEvent], *holdings: Holding) -> DeviceMemory:
    def owner_of(event: MemoryEvent) -> Owner:
        role = "gradients" if event.op.startswith("gradient") else "activations"
        return Owner(role, "dense", ("train.py", 7, "step"))

    made = make_book("/GPU:0", events, holdings, owner_of, lambda number: "float32")
    assert made is not None
    return made


def sums(made: DeviceMemory) -> dict[str, int]:
    found: dict[str, int] = {}
    for owner in made.at_peak:
        found[owner.role] = found.get(owner.role, 0) + owner.bytes
    return found


def two_steps() -> Device:
    device = Device(in_use=500)
    for _ in range(2):
        device.take(1, 100, "dense/MatMul")
        device.take(2, 200, "dense/Relu")
        device.take(3, 50, "gradient_tape/dense/MatMul")
        device.give(2, 200)
        device.give(3, 50)
        device.give(1, 100)
    return device


def test_the_owners_sum_to_the_peak_and_what_has_none_is_said() -> None:
    made = book(two_steps().events, holding("weights", 300, "dense"), holding("optimizer", 150))
    assert made.peak_bytes == 850
    assert made.capacity_bytes == LIMIT
    assert sums(made) == {"weights": 300, "optimizer": 150, "activations": 300, "gradients": 50, "other": 50}
    first = next(owner for owner in made.at_peak if owner.role == "weights")
    assert (first.file, first.line, first.layer, first.bytes, first.count) == ("train.py", 3, "dense", 300, 1)
    assert next(o for o in made.at_peak if o.role == "activations").largest.op == "dense/Relu"


def test_the_curve_is_one_step_and_its_points_sum_to_what_is_in_use() -> None:
    made = book(two_steps().events, holding("weights", 300))
    totals = [sum(point.bytes) for point in made.curve]
    assert max(totals) == 850
    assert len(totals) <= 6
    assert [point.bytes[ROLES.index("weights")] for point in made.curve] == [300] * len(totals)


def test_the_curve_never_shows_more_than_the_peak() -> None:
    device = Device(in_use=3000)
    # A slightly higher step runs into this one, and after the peak a tensor from before the window is freed.
    device.take(1, 1040, "dense/MatMul", "[8,130]")
    device.give(2, 500)
    device.take(3, 400, "dense/MatMul", "[8,50]")
    device.take(4, 80, "dense/MatMul", "[8,10]")
    device.give(1, 1040)
    device.give(3, 400)
    device.give(5, 2200)
    made = book(device.events, holding("weights", 300), holding("input", 2200))
    totals = [sum(point.bytes) for point in made.curve]
    assert max(totals) == made.peak_bytes
    assert totals == [event.in_use for event in device.events][-len(totals) :]


def test_of_steps_that_are_alike_the_one_that_is_seen_whole_is_taken() -> None:
    """The window began in the middle of a step, at the same peak: what was allocated before has no owner."""
    device = Device(in_use=900)
    device.take(9, 40, "dense/MatMul")
    device.give(5, 340)
    device.give(9, 40)
    device.take(1, 380, "dense/MatMul")
    made = book(device.events)
    assert made.peak_bytes == 940
    assert sums(made) == {"activations": 380, "other": 560}


def test_a_variable_that_moves_stays_the_variable() -> None:
    device = Device(in_use=400)
    device.take(1, 300, "adam/AssignSubVariableOp_2", shape="[8]")
    made = book(device.events, holding("weights", 300, "dense"), holding("weights", 100, "head", "[2]"))
    layers = {owner.layer: owner.bytes for owner in made.at_peak if owner.role == "weights"}
    # The old memory of the first is what is left of the 400 bytes from before.
    assert layers == {"dense": 300, "head": 100}
    assert sums(made)["other"] == 300


def test_tensors_that_share_memory_do_not_count_twice() -> None:
    made = book(two_steps().events, holding("weights", 400), holding("input", 400))
    assert sums(made)["weights"] == 400
    assert "input" not in sums(made)
    assert sum(owner.bytes for owner in made.at_peak) == made.peak_bytes


def test_too_many_owners_become_one_of_each_role() -> None:
    device = Device()
    for number in range(MAX_OWNERS + 50):
        device.take(number, 10 + number % 7, f"op_{number}")

    def owner_of(event: MemoryEvent) -> Owner:
        return Owner("activations", event.op)

    made = make_book("/GPU:0", device.events, [], owner_of, lambda number: "")
    assert made is not None
    assert len(made.at_peak) == MAX_OWNERS + 1
    assert sum(owner.bytes for owner in made.at_peak) == made.peak_bytes
    assert sum(owner.count for owner in made.at_peak) == MAX_OWNERS + 50


def test_a_window_without_an_allocation_has_no_book() -> None:
    device = Device(in_use=100)
    device.give(1, 50)
    assert make_book("/GPU:0", device.events, [], lambda event: Owner("other"), lambda number: "") is None
