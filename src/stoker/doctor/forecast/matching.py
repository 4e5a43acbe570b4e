"""Matching the allocations of several runs that had different batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from stoker.doctor.forecast.trace import StepTrace, TracedAllocation

# The op, the purpose of the allocation, its bytes (-1 if they change with the batch), and a number.
AllocationKey = tuple[str, str, int, int]
AllocationName = tuple[str, str]


def match_allocations(traces: Sequence[StepTrace]) -> list[list[AllocationKey]]:
    """Return a key for each allocation of each trace; the same allocation has the same key in all traces.

    Each op of a graph has a name of its own. But many eager ops and copies to the device share a name, and their order
    differs between runs. So those with the same size in all traces are matched, and the others by the order of their
    sizes: if one is larger than another at one batch, it is larger at every batch.
    """
    common = _sizes_in_all(traces)
    return [list(_keys(trace.allocations, common)) for trace in traces]


def _keys(
    allocations: Sequence[TracedAllocation], common: dict[AllocationName, Counter[int]]
) -> Iterator[AllocationKey]:
    rank = _rank_growing(allocations, common)
    seen: Counter[tuple[str, str, int]] = Counter()
    for number, one in enumerate(allocations):
        if number in rank:
            yield (one.op, one.region, -1, rank[number])
        else:
            size = (one.op, one.region, one.bytes)
            yield (*size, seen[size])
            seen[size] += 1


def _sizes_in_all(traces: Sequence[StepTrace]) -> dict[AllocationName, Counter[int]]:
    """Return, for each name, the sizes that every trace has, and how many times."""
    tables = [_sizes_by_name(trace.allocations) for trace in traces]
    names = {name for table in tables for name in table}
    return {
        name: reduce(lambda one, other: one & other, (table.get(name, Counter()) for table in tables))
        for name in names
    }


def _sizes_by_name(allocations: Iterable[TracedAllocation]) -> dict[AllocationName, Counter[int]]:
    sizes: dict[AllocationName, Counter[int]] = {}
    for one in allocations:
        sizes.setdefault((one.op, one.region), Counter())[one.bytes] += 1
    return sizes


def _rank_growing(
    allocations: Sequence[TracedAllocation], common: dict[AllocationName, Counter[int]]
) -> dict[int, int]:
    """Return the numbers of the allocations that not all traces have, with their ranks by size, the largest first."""
    left = {name: Counter(sizes) for name, sizes in common.items()}
    growing: dict[AllocationName, list[int]] = {}
    for number, one in enumerate(allocations):
        name = (one.op, one.region)
        if left[name][one.bytes]:
            left[name][one.bytes] -= 1
        else:
            growing.setdefault(name, []).append(number)
    return {
        number: rank
        for numbers in growing.values()
        for rank, number in enumerate(sorted(numbers, key=lambda number: -allocations[number].bytes))
    }
