"""A coarse simulation of a job of many workers: stragglers, the exchange of gradients, failures, checkpoints.

One measured run gives the time of a step and its variation, the size of the gradients, and the cost of saving and
starting. The user gives the rest: how fast the network is, and how often something fails.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from stoker.doctor.pricing.scaling import LATENCY_S
from stoker.records import Record, SteppingRow
from stoker.units import duration, long_duration, quantity

# The number of failures drawn for each size, which makes the efficiency accurate to about a hundredth.
_FAILURES = 4000
_SEED = 1
# Without a measured checkpoint, assume weights and two moments of an optimizer, written at this many bytes a second.
_SAVED_PARTS, _STORAGE_BYTES = 3, 1e9
# The time until a failure is noticed and the machines are back.
_NOTICED_S = 30.0
# The number of intervals tried, on a logarithmic scale from a checkpoint's cost to twice the time between failures.
_INTERVALS = 80


@dataclass(frozen=True)
class Fleet:
    """The assumptions about a job."""

    # The step time of one worker by itself.
    step_s: float
    # The times of its single steps. Without them, all workers are equally fast.
    step_times: Sequence[float]
    gradient_bytes: int
    # Bytes a second between workers.
    bandwidth: float
    # The mean time between failures of a job with this number of `workers`. A smaller job fails less often.
    mtbf_s: float
    workers: int
    checkpoint_s: float
    restart_s: float
    # The latency of a message between two workers.
    latency_s: float = LATENCY_S

    def assumptions(self) -> list[str]:
        """Return the assumptions in words."""
        spread = (
            f"workers vary from step to step as this one did ({quantity(len(self.step_times), 'step')}); "
            "all wait for the slowest"
            if self.step_times
            else "all workers are equally fast: the run kept no individual steps"
        )
        return [
            f"a step takes one worker {duration(self.step_s)}, and each worker's batch stays as it is",
            spread,
            f"at every step {self.gradient_bytes / 1e6:.1f} MB of gradients are exchanged at "
            f"{self.bandwidth / 1e9:g} GB/s and {self.latency_s * 1e6:.4g} us a message, in a ring or a tree, "
            "whichever is quicker, without overlap",
            f"a job of {quantity(self.workers, 'worker')} fails every {long_duration(self.mtbf_s)}, at random; one of "
            "half the size half as often",
            f"a checkpoint holds up all workers for {duration(self.checkpoint_s)}; a failure loses "
            "what came after the last one",
            f"after a failure it takes {duration(self.restart_s)} until all workers work again",
        ]


def fleet_of(
    record: Record,
    phase: SteppingRow,
    bandwidth: float,
    mtbf_s: float,
    workers: int,
    checkpoint_s: float | None = None,
    restart_s: float | None = None,
    latency_s: float = LATENCY_S,
) -> Fleet:
    """Return a job of workers like this run. Values that are not given are taken from the run."""
    if checkpoint_s is None:
        saves = sum(row.count for row in record.tables.checkpoints)
        measured = sum(row.seconds for row in record.tables.checkpoints)
        checkpoint_s = measured / saves if saves else _SAVED_PARTS * phase.gradient_bytes / _STORAGE_BYTES
    if restart_s is None:
        start = record.accounts.get("startup", 0.0) + record.accounts.get("trace", 0.0)
        restart_s = _NOTICED_S + start
    return Fleet(
        step_s=(phase.seconds - _find_exchange_s(record, phase)) / phase.steps,
        step_times=record.step_times,
        gradient_bytes=phase.gradient_bytes,
        bandwidth=bandwidth,
        mtbf_s=mtbf_s,
        workers=workers,
        checkpoint_s=max(checkpoint_s, 1e-3),
        restart_s=restart_s,
        latency_s=latency_s,
    )


def _find_exchange_s(record: Record, phase: SteppingRow) -> float:
    """Return what a run that was a worker spent on its peers, since a job of another size has its own exchange."""
    windows = record.tables.sums
    share = windows.graph_communication_ns / windows.graph_ns if windows.graph_ns else 0.0
    return share * phase.accounts.get("graph", 0.0)


@dataclass(frozen=True)
class Outlook:
    """The prediction for a job of some size. Shares are of all workers' time."""

    workers: int
    step_s: float
    # The seconds of a step, beyond the work itself, for waiting for the slowest and for exchanging gradients.
    waiting_s: float
    exchange_s: float
    mtbf_s: float
    interval_s: float
    # The share of the time that is not lost to checkpoints, failures and restarts.
    kept: float
    # The work done, as a share of what this many workers could do without any loss.
    efficiency: float


def outlook(fleet: Fleet, workers: int) -> Outlook:
    """Predict a job of this many workers, with the best checkpoint interval for it."""
    slowest = slowest_of(fleet.step_times, workers) if fleet.step_times else fleet.step_s
    mean = sum(fleet.step_times) / len(fleet.step_times) if fleet.step_times else fleet.step_s
    # The single steps give the spread; the run as a whole gives the time of a step.
    waiting = fleet.step_s * (slowest / mean - 1)
    exchange = exchange_s(workers, fleet.gradient_bytes, fleet.bandwidth, fleet.latency_s)
    step = fleet.step_s + waiting + exchange
    mtbf = fleet.mtbf_s * fleet.workers / workers
    interval, kept = best_interval(mtbf, fleet.checkpoint_s, fleet.restart_s)
    efficiency = kept * fleet.step_s / step
    return Outlook(workers, step, waiting, exchange, mtbf, interval, kept, efficiency)


def slowest_of(times: Sequence[float], workers: int) -> float:
    """Return the mean time of the slowest worker if each worker's time is drawn from these at random."""
    ordered, count = sorted(times), len(times)
    return sum(
        time * (((place + 1) / count) ** workers - (place / count) ** workers)
        for place, time in enumerate(ordered)
    )


def exchange_s(workers: int, size: int, bandwidth: float, latency_s: float = LATENCY_S) -> float:
    """Return the seconds of an all-reduce, in a ring or in two trees, whichever is quicker."""
    if workers < 2:
        return 0.0
    ring = 2 * (workers - 1)
    tree = 2 * math.ceil(math.log2(workers))
    # In a tree, each hop carries all bytes; in a ring, only a worker's share.
    by_ring = ring / workers * size / bandwidth + ring * latency_s
    by_tree = 2 * size / bandwidth + tree * latency_s
    return min(by_ring, by_tree)


def best_interval(mtbf_s: float, checkpoint_s: float, restart_s: float) -> tuple[float, float]:
    """Return the time between checkpoints that keeps most of a job's time, and the share that it keeps."""
    draw = random.Random(_SEED)
    # All intervals get the same failures, so that only the interval differs.
    failures = [draw.expovariate(1 / mtbf_s) for _ in range(_FAILURES)]
    shortest, longest = max(checkpoint_s, 1e-3), 2 * max(mtbf_s, checkpoint_s)
    ratio = (longest / shortest) ** (1 / (_INTERVALS - 1))
    tried = [shortest * ratio**number for number in range(_INTERVALS)]
    kept = [kept_share(interval, checkpoint_s, restart_s, failures) for interval in tried]
    best = max(range(_INTERVALS), key=kept.__getitem__)
    return tried[best], kept[best]


def kept_share(interval_s: float, checkpoint_s: float, restart_s: float, failures: Sequence[float]) -> float:
    """Return the share of a job's time that is training and not lost; `failures` holds the times between failures."""
    kept = 0.0
    for time in failures:
        # A failure may come while the job is still starting.
        saved = int(max(0.0, time - restart_s) / (interval_s + checkpoint_s))
        kept += saved * interval_s
    return kept / sum(failures)
