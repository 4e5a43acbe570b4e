"""TensorFlow's device allocator (best fit with coalescing) without the memory: it makes the same choices.

Which free piece an allocation gets, and how much of the piece, decides how many bytes are in use beyond the tensors,
and whether a large tensor still finds room. That differs from batch to batch and does not grow linearly, so the
allocations are replayed.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

# Sizes are rounded up to this. Free pieces are sorted into bins of 256, 512, 1024, ... bytes.
_UNIT = 256
_BINS = 21
# A piece is not split if the rest would be smaller than the requested size, unless the rest would waste this much.
_MAX_WASTE = 128 << 20
# Memory that grows does so by regions. This is the size of the first; each next one has twice the size.
_FIRST_REGION = 2 << 20
# The distance between the addresses of regions, so large that pieces of two regions are never neighbours.
_APART = 1 << 50


class NoRoomError(Exception):
    """The allocator has no piece for an allocation."""


class Allocator:
    """A device's memory. It `grows` as with `set_memory_growth` and on the software GPU; otherwise it is one region."""

    def __init__(self, limit: int, grows: bool) -> None:
        self._limit = limit // _UNIT * _UNIT
        self._region = _FIRST_REGION if grows else self._limit
        self._regions: dict[int, int] = {}
        # By address: the sizes of all pieces, those in use, and the neighbours of each.
        self._sizes: dict[int, int] = {}
        self._used: set[int] = set()
        self._next: dict[int, int | None] = {}
        self._previous: dict[int, int | None] = {}
        self._bins: list[list[tuple[int, int]]] = [[] for _ in range(_BINS)]
        self._next_region = 0
        self.in_use = 0
        self.peak = 0

    def allocate(self, size: int) -> int:
        """Return the address of a piece of at least this size.

        Raises:
            NoRoomError: no piece is large enough.
        """
        rounded = max(_UNIT, -(-size // _UNIT) * _UNIT)
        found = self._find(rounded)
        if found is None and (self._extend(rounded) or (self._release(rounded) and self._extend(rounded))):
            found = self._find(rounded)
        if found is None:
            raise NoRoomError
        self._used.add(found)
        self.in_use += self._sizes[found]
        self.peak = max(self.peak, self.in_use)
        return found

    def free(self, address: int) -> None:
        """Free a piece, and join it with adjacent free pieces."""
        self._used.discard(address)
        self.in_use -= self._sizes[address]
        following, before = self._next[address], self._previous[address]
        if following is not None and following not in self._used:
            self._take_out(following)
            self._merge(address, following)
        if before is not None and before not in self._used:
            self._take_out(before)
            self._merge(before, address)
            address = before
        self._put_in(address)

    def _find(self, rounded: int) -> int | None:
        for pieces in self._bins[_bin_of(rounded) :]:
            place = bisect_left(pieces, (rounded, -1))
            if place < len(pieces):
                size, address = pieces.pop(place)
                if size >= 2 * rounded or size - rounded >= _MAX_WASTE:
                    self._split(address, rounded)
                return address
        return None

    def _split(self, address: int, rounded: int) -> None:
        rest, following = address + rounded, self._next[address]
        self._sizes[rest] = self._sizes[address] - rounded
        self._sizes[address] = rounded
        self._next[address], self._previous[rest], self._next[rest] = rest, address, following
        if following is not None:
            self._previous[following] = rest
        self._put_in(rest)

    def _merge(self, first: int, second: int) -> None:
        self._sizes[first] += self._sizes.pop(second)
        following = self._next[first] = self._next.pop(second)
        del self._previous[second]
        if following is not None:
            self._previous[following] = first

    def _extend(self, rounded: int) -> bool:
        """Add a region; return False if the limit leaves no room for one."""
        available = self._limit - sum(self._regions.values())
        if rounded > available:
            return False
        doubled = False
        while rounded > self._region:
            self._region, doubled = self._region * 2, True
        size = min(self._region, available)
        self._region *= 1 if doubled else 2
        address = self._next_region
        self._next_region += _APART
        self._regions[address] = self._sizes[address] = size
        self._next[address] = self._previous[address] = None
        self._put_in(address)
        return True

    def _release(self, rounded: int) -> bool:
        """Give back the regions in which nothing is in use, if that can help. Return whether it can."""
        empty = [at for at, size in self._regions.items() if at not in self._used and self._sizes[at] == size]
        room = self._limit - sum(self._regions.values()) + sum(self._regions[at] for at in empty)
        if not empty or rounded > room:
            return False
        for address in empty:
            self._take_out(address)
            del self._regions[address], self._sizes[address]
            del self._next[address], self._previous[address]
        return True

    def _put_in(self, address: int) -> None:
        insort(self._bins[_bin_of(self._sizes[address])], (self._sizes[address], address))

    def _take_out(self, address: int) -> None:
        pieces = self._bins[_bin_of(self._sizes[address])]
        del pieces[bisect_left(pieces, (self._sizes[address], address))]


def _bin_of(size: int) -> int:
    return min(_BINS - 1, (size // _UNIT).bit_length() - 1)


@dataclass(frozen=True)
class AllocatorReplay:
    """The result of a replay: the bytes in use at the peak, and the numbers and bytes of the pieces in use then."""

    peak_bytes: int
    at_peak: dict[int, int] = field(default_factory=dict)


def replay(moves: Sequence[int], sizes: Sequence[int], limit: int, grows: bool) -> AllocatorReplay | None:
    """Replay allocations (`n` is made, `~n` is freed). Return None if one of them finds no room."""
    memory = Allocator(limit, grows)
    addresses: dict[int, int] = {}
    given: dict[int, int] = {}
    highest = 0
    try:
        for place, move in enumerate(moves):
            if move < 0:
                memory.free(addresses[~move])
                continue
            before = memory.in_use
            addresses[move] = memory.allocate(sizes[move])
            given[move] = memory.in_use - before
            if memory.peak > before and memory.in_use == memory.peak:
                highest = place
    except NoRoomError:
        return None
    alive = _alive_after(moves[: highest + 1])
    return AllocatorReplay(memory.peak, {number: given[number] for number in alive})


def _alive_after(moves: Sequence[int]) -> set[int]:
    alive: set[int] = set()
    for move in moves:
        if move < 0:
            alive.discard(~move)
        else:
            alive.add(move)
    return alive
