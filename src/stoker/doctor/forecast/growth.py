"""From the traces of a few small batches to the allocations of any batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from stoker.doctor.forecast.allocator import AllocatorReplay, replay
from stoker.doctor.forecast.matching import AllocationKey, match_allocations
from stoker.doctor.forecast.trace import StepTrace, TracedOwner
from stoker.errors import UsageError

# Points of a curve: rows, and the bytes of one allocation.
Points = list[tuple[int, int]]
# The largest batch to try: no program allocates a larger one.
MAX_ROWS = 1 << 24
_FAR = 1 << 60


@dataclass(frozen=True)
class Curve:
    """Bytes of an allocation by the rows of the batch: `constant + per_row * rows + per_square * rows ** 2`."""

    constant: float
    per_row: float
    per_square: float = 0.0
    # The distance between the curve and the measured point farthest from it.
    residual: float = 0.0

    def at(self, rows: int) -> int:
        """Return the bytes at a batch of this many rows."""
        return max(0, round(self.constant + self.per_row * rows + self.per_square * rows * rows))


def fit_curve(points: Points) -> Curve:
    """Fit a line to points; or a parabola to three points that are not on a line, if the bytes grow faster than one.

    A loss that compares every row with every other allocates with the square of the batch. If the bytes grow more
    slowly than a line, they are a kernel's scratch memory, for which a line is as good as anything.
    """
    if len(points) == 1:
        return Curve(points[0][1], 0.0)
    count = len(points)
    mean_rows = sum(rows for rows, _ in points) / count
    mean_bytes = sum(size for _, size in points) / count
    spread = sum((rows - mean_rows) ** 2 for rows, _ in points)
    slope = sum((rows - mean_rows) * (size - mean_bytes) for rows, size in points) / spread
    constant = mean_bytes - slope * mean_rows
    residual = max(abs(constant + slope * rows - size) for rows, size in points)
    if residual < 1.0 or count != 3:
        return Curve(constant, slope, residual=residual)
    (a, at_a), (b, at_b), (c, at_c) = points
    square = ((at_c - at_b) / (c - b) - (at_b - at_a) / (b - a)) / (c - a)
    if square <= 0.0:
        return Curve(constant, slope, residual=residual)
    slope = (at_b - at_a) / (b - a) - square * (a + b)
    return Curve(at_a - slope * a - square * a * a, slope, square)


@dataclass(frozen=True)
class OwnerShare:
    """The bytes that an owner holds at a peak, and how much they grow with each additional row."""

    owner: TracedOwner
    bytes: int
    bytes_per_row: float


@dataclass(frozen=True)
class _Order:
    """The order in which one run allocated and freed, with a curve for each allocation."""

    trace: StepTrace
    curves: list[Curve]

    def sizes_at(self, rows: int) -> list[int]:
        return [curve.at(rows) for curve in self.curves]

    def play(self, rows: int, limit: int, grows: bool) -> AllocatorReplay | None:
        return replay(self.trace.moves, self.sizes_at(rows), limit, grows)

    def count_tensors(self, rows: int) -> int:
        """Return the largest number of bytes that tensors occupy at once."""
        sizes = self.sizes_at(rows)
        held = highest = 0
        for move in self.trace.moves:
            held += sizes[move] if move >= 0 else -sizes[~move]
            highest = max(highest, held)
        return highest


class ScalingStep:
    """A program's first steps at any batch.

    Ops that do not depend on each other run in any order, which differs between runs. So the order of each measured run
    is replayed. The median peak counts, and a batch fits if it fits in most orders.
    """

    def __init__(self, traces: Sequence[StepTrace]) -> None:
        self.traces = sorted(traces, key=lambda trace: trace.rows)
        keys = match_allocations(self.traces)
        points: dict[AllocationKey, Points] = {}
        for trace, of_trace in zip(self.traces, keys, strict=True):
            for key, one in zip(of_trace, trace.allocations, strict=True):
                points.setdefault(key, []).append((trace.rows, one.bytes))
        curves = {key: fit_curve(some) for key, some in points.items()}
        self._orders = [
            _Order(trace, [curves[key] for key in of_trace])
            for trace, of_trace in zip(self.traces, keys, strict=True)
        ]

    def peak_at(self, rows: int, grows: bool = False) -> int:
        """Return the allocator's bytes in use at the peak of a batch, on a device with enough memory."""
        return self._play_middle(rows, grows)[1].peak_bytes

    def tensors_at(self, rows: int) -> int:
        """Return the largest number of bytes in tensors at once at a batch, in the order with the median peak."""
        return self._play_middle(rows, False)[0].count_tensors(rows)

    def fits(self, rows: int, limit: int, grows: bool = False) -> bool:
        """Return whether a batch fits into the limit in most of the orders."""
        played = [order.play(rows, limit, grows) is not None for order in self._orders]
        return 2 * sum(played) > len(played)

    def largest_batch(self, limit: int, grows: bool = False) -> int:
        """Return the most rows with which the step fits into the limit; 0 if not even one row fits."""
        if not self.fits(1, limit, grows):
            return 0
        fits, fails = 1, 2
        while fails <= MAX_ROWS and self.fits(fails, limit, grows):
            fits, fails = fails, fails * 2
        while fails - fits > max(1, fits // 500):
            middle = (fits + fails) // 2
            if self.fits(middle, limit, grows):
                fits = middle
            else:
                fails = middle
        return fits

    def _play_middle(self, rows: int, grows: bool) -> tuple[_Order, AllocatorReplay]:
        played = []
        for order in self._orders:
            one = order.play(rows, _FAR, grows)
            assert one is not None
            played.append((order, one))
        return sorted(played, key=lambda item: item[1].peak_bytes)[len(played) // 2]

    @cached_property
    def uncertainty(self) -> float:
        """The share of the bytes of the largest measured batch that does not lie on the curves."""
        last = self._orders[-1]
        whole = max(1, sum(allocation.bytes for allocation in last.trace.allocations))
        return sum(curve.residual for curve in last.curves) / whole

    def owners_at(self, rows: int) -> list[OwnerShare]:
        """Return the owners of the memory at the peak of a batch, the largest first."""
        order, played = self._play_middle(rows, False)
        held: Counter[int] = Counter()
        per_row: dict[int, float] = {}
        for number, size in played.at_peak.items():
            allocation, curve = order.trace.allocations[number], order.curves[number]
            held[allocation.owner] += size
            slope = curve.per_row + 2 * curve.per_square * rows
            per_row[allocation.owner] = per_row.get(allocation.owner, 0.0) + slope
        return [
            OwnerShare(order.trace.owners[owner], size, per_row[owner]) for owner, size in held.most_common()
        ]

    def check_growth(self) -> None:
        """Check that the batch affects memory at all.

        Raises:
            UsageError: no allocation grows.
        """
        if len(self.traces) > 1 and not any(
            curve.per_row >= 1.0 for order in self._orders for curve in order.curves
        ):
            raise UsageError(
                "no allocation of the program grows with the batch that was changed: name what sets it, with "
                "--batch-arg=--batch-size for an option, or --batch-arg BATCH for a name in the program"
            )
