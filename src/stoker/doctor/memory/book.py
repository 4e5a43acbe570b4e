"""The book of a device: which owners' memory is in use at the peak, and the curve of the step around the peak."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from stoker.doctor.attach.gently import gently
from stoker.doctor.attach.sites import shown_path
from stoker.doctor.memory.events import MemoryEvent
from stoker.doctor.memory.inventory import Holding
from stoker.doctor.memory.owners import Owner
from stoker.records import ROLES, DeviceMemory, LargestTensor, MemoryOwner, MemoryPoint

MAX_OWNERS = 200
_MAX_POINTS = 240
# How near the memory in use between two steps is to the least, as a share of what a step adds.
_BETWEEN_STEPS = 0.05
# Steps are alike if their peaks are at least this near to each other, as a share.
_ALIKE = 0.95
_REST = "rounding up by the allocator, and unknown owners"

_ASSIGNMENT = re.compile(r"(^|/)Assign(Sub|Add)?VariableOp(_\d+)?$")
_PER_STEP = ("activations", "gradients", "workspace", "input")
_VARIABLES = ("weights", "optimizer")

# Returns the owner of an allocation; and the name of a dtype by its number.
OwnerOf = Callable[[MemoryEvent], Owner]
DTypeName = Callable[[int], str]


@dataclass
class _Row:
    """The memory that one owner holds."""

    bytes: int = 0
    count: int = 0
    largest_bytes: int = 0
    float64_bytes: int = 0
    largest: LargestTensor = field(default_factory=LargestTensor)

    def add(self, size: int, largest: LargestTensor) -> None:
        self.bytes += size
        self.count += 1
        self.float64_bytes += size if largest.dtype == "float64" else 0
        if size > self.largest_bytes:
            self.largest_bytes, self.largest = size, largest


@dataclass(frozen=True)
class _AtPeak:
    """The moment of the peak: the event, the living allocations of the window, and the bytes from before the window."""

    event: MemoryEvent
    alive: list[MemoryEvent]
    before: int


def make_book(
    device: str,
    events: Sequence[MemoryEvent],
    holdings: Iterable[Holding],
    owner_of: OwnerOf,
    dtype_name: DTypeName,
) -> DeviceMemory | None:
    """Return the book of one device from the events of a window; None if nothing was allocated in the window.

    `holdings` is what lived from before the window to its end, the most certain first.
    """
    peak = _find_peak(events)
    if peak is None:
        return None
    rows: dict[Owner, _Row] = {}
    staying = list(holdings)
    for event in peak.alive:
        made = LargestTensor(event.shape, dtype_name(event.dtype), event.op)
        owner = _take_over(event, made, staying) or owner_of(event)
        rows.setdefault(owner, _Row()).add(event.bytes, made)
    kept, rest = _fit(staying, peak.before)
    for holding in kept:
        owner = Owner(holding.role, holding.layer, holding.site)
        made = LargestTensor(holding.shape, holding.dtype, holding.op)
        rows.setdefault(owner, _Row()).add(holding.bytes, made)
    if rest:
        rows.setdefault(Owner("other"), _Row()).add(rest, LargestTensor(op=_REST))
    batch, batch_bytes = _find_batch(
        peak.alive, [owner_of(event).role for event in peak.alive], {owner.role for owner in rows}
    )
    return DeviceMemory(
        device,
        batch=batch,
        batch_bytes=batch_bytes,
        peak_bytes=peak.event.in_use,
        capacity_bytes=peak.event.in_use + peak.event.available,
        fragmentation=round(peak.event.fragmentation, 4),
        at_peak=_owners(rows),
        curve=_curve(events, peak, kept, owner_of),
        run_peak_bytes=peak.event.in_use,
    )


def _find_peak(events: Sequence[MemoryEvent]) -> _AtPeak | None:
    """Return the best-known peak: of similar steps, not the peak of the step in which the window began."""
    highest = max((event.in_use for event in events if event.is_allocation), default=None)
    if highest is None:
        return None
    alive: dict[int, MemoryEvent] = {}
    known, best, most = 0, 0, -1
    for place, event in enumerate(events):
        gone = alive.pop(event.address, None)
        known -= gone.bytes if gone is not None else 0
        if event.is_allocation:
            alive[event.address] = event
            known += event.bytes
            if known > most and event.in_use >= highest * _ALIKE:
                best, most = place, known
    peak = events[best]
    living = _alive_after(events[: best + 1])
    return _AtPeak(peak, living, max(0, peak.in_use - sum(event.bytes for event in living)))


def _alive_after(events: Sequence[MemoryEvent]) -> list[MemoryEvent]:
    alive: dict[int, MemoryEvent] = {}
    for event in events:
        alive.pop(event.address, None)
        if event.is_allocation:
            alive[event.address] = event
    return list(alive.values())


def _take_over(event: MemoryEvent, made: LargestTensor, holdings: list[Holding]) -> Owner | None:
    """Return the owner of the variable that this new memory belongs to, and drop its old memory from the holdings.

    An update gives a variable new memory if its old memory is still being read.
    """
    if not _ASSIGNMENT.search(event.op):
        return None
    for number, holding in enumerate(holdings):
        if (holding.shape, holding.dtype) == (made.shape, made.dtype) and holding.role in _VARIABLES:
            del holdings[number]
            return Owner(holding.role, holding.layer, holding.site)
    return None


def _fit(holdings: Iterable[Holding], room: int) -> tuple[list[Holding], int]:
    """Return the holdings that fit into the bytes, and the bytes left over. Memory shared by tensors counts once."""
    kept = []
    for holding in holdings:
        if holding.bytes <= room:
            kept.append(holding)
            room -= holding.bytes
    return kept, room


def _owners(rows: dict[Owner, _Row]) -> list[MemoryOwner]:
    """Return the owners, largest first. If there are too many, the smallest become one owner for each role."""
    ordered = sorted(rows.items(), key=lambda item: -item[1].bytes)
    small: dict[str, _Row] = {}
    for owner, row in ordered[MAX_OWNERS:]:
        together = small.setdefault(owner.role, _Row())
        doubles = together.float64_bytes + row.float64_bytes
        together.add(row.bytes, row.largest)
        together.float64_bytes = doubles
        together.count += row.count - 1
    ordered = [*ordered[:MAX_OWNERS], *((Owner(role), row) for role, row in small.items())]
    return [_owner(owner, row) for owner, row in ordered]


def _owner(owner: Owner, row: _Row) -> MemoryOwner:
    file, line, function = owner.site or ("", 0, "")
    shown = shown_path(file) if file else ""
    return MemoryOwner(
        shown,
        line,
        function,
        owner.layer,
        owner.role,
        row.bytes,
        row.count,
        row.largest,
        float64_bytes=row.float64_bytes,
    )


def _curve(
    events: Sequence[MemoryEvent], peak: _AtPeak, kept: list[Holding], owner_of: OwnerOf
) -> list[MemoryPoint]:
    """Return bytes by role over the step around the peak, at a bounded number of moments, with every high point."""
    first, last = _step_around(events, peak.event)
    start = events[first].at_ns
    base = dict.fromkeys(ROLES, 0)
    for holding in kept:
        base[holding.role] += holding.bytes
    known = sum(base.values())
    alive: dict[int, tuple[str, int]] = {}
    sums = dict.fromkeys(ROLES, 0)
    points: list[tuple[int, MemoryPoint]] = []
    for place, event in enumerate(gently(events[: last + 1])):
        gone = alive.pop(event.address, None)
        if gone is not None:
            sums[gone[0]] -= gone[1]
        if event.is_allocation:
            role = owner_of(event).role
            alive[event.address] = (role, event.bytes)
            sums[role] += event.bytes
        if place >= first:
            values = {role: base[role] + sums[role] for role in ROLES}
            _balance(values, event.in_use - known - sum(sums.values()))
            at_ms = round((event.at_ns - start) / 1e6, 4)
            points.append((event.in_use, MemoryPoint(at_ms, list(values.values()))))
    return _thin(points)


def _balance(values: dict[str, int], missing: int) -> None:
    """Make the roles sum to the bytes in use: missing bytes have no owner, and excess bytes were freed by then.

    A window does not see every deallocation of what lived before it, so the least certain roles give way first.
    """
    if missing >= 0:
        values["other"] += missing
        return
    for role in reversed(ROLES):
        freed = min(values[role], -missing)
        values[role] -= freed
        missing += freed


def _step_around(events: Sequence[MemoryEvent], peak: MemoryEvent) -> tuple[int, int]:
    """Return the first and the last event of the step that a peak is in. A higher peak belongs to another step."""
    least = min(event.in_use for event in events)
    floor = least + int((peak.in_use - least) * _BETWEEN_STEPS)
    at = bisect_left(events, peak.at_ns, key=lambda event: event.at_ns)
    first = at
    while first > 0 and events[first].in_use > floor and events[first - 1].in_use <= peak.in_use:
        first -= 1
    last = at
    while last < len(events) - 1 and events[last].in_use > floor and events[last + 1].in_use <= peak.in_use:
        last += 1
    return first, last


def _thin(points: list[tuple[int, MemoryPoint]]) -> list[MemoryPoint]:
    """Return at most `_MAX_POINTS` points: the highest of each stretch."""
    stretch = -(-len(points) // _MAX_POINTS) or 1
    stretches = [points[n : n + stretch] for n in range(0, len(points), stretch)]
    return [max(some, key=lambda point: point[0])[1] for some in stretches]


def _find_batch(
    events: Iterable[MemoryEvent], roles: Iterable[str], present: set[str]
) -> tuple[int | None, int]:
    """Return a batch's rows (the first side of most of the activations' bytes), and the bytes that grow with them."""
    sides: Counter[int] = Counter()
    of_step: list[tuple[int, int]] = []
    for event, role in zip(events, roles, strict=True):
        side = first_side(event.shape)
        if role in _PER_STEP and side:
            of_step.append((side, event.bytes))
            if role == "activations":
                sides[side] += event.bytes
    if not sides or not present & {"weights", "gradients"}:
        return None, 0
    batch = sides.most_common(1)[0][0]
    return batch, sum(size for side, size in of_step if side % batch == 0)


def first_side(shape: str) -> int:
    """Return the first side of a shape as TensorFlow writes it; 0 for a scalar."""
    found = re.match(r"\[(\d+)", shape)
    return int(found[1]) if found else 0


def book_of_holdings(device: str, holdings: Iterable[Holding], in_use: int, capacity: int) -> DeviceMemory:
    """Return the book of what is alive now, when no window has seen how it was allocated."""
    kept, rest = _fit(holdings, in_use)
    rows: dict[Owner, _Row] = {}
    for holding in kept:
        made = LargestTensor(holding.shape, holding.dtype, holding.op)
        owner = Owner(holding.role, holding.layer, holding.site)
        rows.setdefault(owner, _Row()).add(holding.bytes, made)
    if rest:
        rows.setdefault(Owner("other"), _Row()).add(rest, LargestTensor(op=_REST))
    return DeviceMemory(device, in_use, capacity, 0.0, _owners(rows), run_peak_bytes=in_use)


def raise_run_peak(book: DeviceMemory, run_peak_bytes: int) -> DeviceMemory:
    """Return the book with the highest peak of the whole run."""
    return replace(book, run_peak_bytes=max(book.run_peak_bytes, run_peak_bytes))
