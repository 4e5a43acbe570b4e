"""A job of many workers, simulated: stragglers, the exchange of gradients, failures, checkpoints. A coarse model.

From one measured run: what a step takes and how much that varies, what the workers would exchange, what saving and
starting cost. The rest is said by whoever asks: how fast the network is, how often something fails.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from stoker.doctor.pricing.scaling import LATENCY_S
from stoker.records import Record, SteppingRow
from stoker.units import duration, long_duration

# Failures drawn for each size: the efficiency is then right to about a hundredth.
_FAILURES = 4000
_SEED = 1
# Without a measured checkpoint: weights and two moments of an optimizer, written at so many bytes a second.
_SAVED_PARTS, _STORAGE_BYTES = 3, 1e9
# Until a failure is noticed and the machines are there again.
_NOTICED_S = 30.0
# Intervals tried, evenly on a logarithmic scale between the cost of a checkpoint and twice the time between failures.
_INTERVALS = 80


@dataclass(frozen=True)
class Fleet:
    """What is assumed of a job."""

    # Of one worker by itself.
    step_s: float
    # Single steps of it; without them all workers are equally fast.
    step_times: Sequence[float]
    gradient_bytes: int
    # Bytes a second between workers.
    bandwidth: float
    # The whole job fails so often when it has this many workers; a smaller one less often.
    mtbf_s: float
    workers: int
    checkpoint_s: float
    restart_s: float
    # One message between two workers, beside its bytes.
    latency_s: float = LATENCY_S

    def assumptions(self) -> list[str]:
        """In words."""
        spread = (
            f"workers vary from step to step as this one did ({len(self.step_times)} steps); all wait for the slowest"
            if self.step_times
            else "all workers are equally fast: the run kept no single steps"
        )
        return [
            f"a step takes one worker {duration(self.step_s)}, and the batch of each stays as it is",
            spread,
            f"at every step {self.gradient_bytes / 1e6:.1f} MB of gradients are exchanged at "
            f"{self.bandwidth / 1e9:g} GB/s and {self.latency_s * 1e6:.4g} us a message, in a ring or a tree, "
            "whichever is quicker, overlapping nothing",
            f"a job of {self.workers} workers fails every {long_duration(self.mtbf_s)}, at random; one of half the "
            "size half as often",
            f"a checkpoint holds all up for {duration(self.checkpoint_s)}; what came after the last one is lost at a "
            "failure",
            f"after a failure it takes {duration(self.restart_s)} until all work again",
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
    """A job of workers such as this run was; what is not given is taken from the run."""
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
    """What a run that was a worker already spent on its peers: a job of another size has an exchange of its own."""
    windows = record.tables.sums
    share = windows.graph_communication_ns / windows.graph_ns if windows.graph_ns else 0.0
    return share * phase.accounts.get("graph", 0.0)


@dataclass(frozen=True)
class Outlook:
    """What a job of some size would be; shares are of all workers' time."""

    workers: int
    step_s: float
    # In a step, beside the work itself: waiting for the slowest, and exchanging gradients.
    waiting_s: float
    exchange_s: float
    mtbf_s: float
    interval_s: float
    # Of the time, what is not lost to checkpoints, failures and starting again.
    kept: float
    # Of the work that so many workers could do if nothing were in the way, what they do.
    efficiency: float


def outlook(fleet: Fleet, workers: int) -> Outlook:
    """A job of so many workers, with the checkpoint interval that is best for it."""
    slowest = slowest_of(fleet.step_times, workers) if fleet.step_times else fleet.step_s
    mean = sum(fleet.step_times) / len(fleet.step_times) if fleet.step_times else fleet.step_s
    # The steps that were kept one by one give the spread; the run as a whole says what a step takes.
    waiting = fleet.step_s * (slowest / mean - 1)
    exchange = exchange_s(workers, fleet.gradient_bytes, fleet.bandwidth, fleet.latency_s)
    step = fleet.step_s + waiting + exchange
    mtbf = fleet.mtbf_s * fleet.workers / workers
    interval, kept = best_interval(mtbf, fleet.checkpoint_s, fleet.restart_s)
    efficiency = kept * fleet.step_s / step
    return Outlook(workers, step, waiting, exchange, mtbf, interval, kept, efficiency)


def slowest_of(times: Sequence[float], workers: int) -> float:
    """What the slowest of so many takes on average, each as likely as any to take one of these times."""
    ordered, count = sorted(times), len(times)
    return sum(
        time * (((place + 1) / count) ** workers - (place / count) ** workers)
        for place, time in enumerate(ordered)
    )


def exchange_s(workers: int, size: int, bandwidth: float, latency_s: float = LATENCY_S) -> float:
    """An all-reduce: every byte travels nearly twice; messages one after the other in a ring, or in two trees."""
    if workers < 2:
        return 0.0
    ring = 2 * (workers - 1)
    tree = 2 * math.ceil(math.log2(workers))
    # In a tree every byte takes each hop whole; in a ring its share of them.
    by_ring = ring / workers * size / bandwidth + ring * latency_s
    by_tree = 2 * size / bandwidth + tree * latency_s
    return min(by_ring, by_tree)


def best_interval(mtbf_s: float, checkpoint_s: float, restart_s: float) -> tuple[float, float]:
    """The time between checkpoints that keeps most of a job's time, and the share it keeps."""
    draw = random.Random(_SEED)
    # The same failures for every interval: they differ by the interval alone.
    failures = [draw.expovariate(1 / mtbf_s) for _ in range(_FAILURES)]
    shortest, longest = max(checkpoint_s, 1e-3), 2 * max(mtbf_s, checkpoint_s)
    ratio = (longest / shortest) ** (1 / (_INTERVALS - 1))
    tried = [shortest * ratio**number for number in range(_INTERVALS)]
    kept = [kept_share(interval, checkpoint_s, restart_s, failures) for interval in tried]
    best = max(range(_INTERVALS), key=kept.__getitem__)
    return tried[best], kept[best]


def kept_share(interval_s: float, checkpoint_s: float, restart_s: float, failures: Sequence[float]) -> float:
    """Of a job's time, the share that is training and is not lost; `failures` are the times from one to the next."""
    kept = 0.0
    for time in failures:
        # A failure may come while the job is still starting.
        saved = int(max(0.0, time - restart_s) / (interval_s + checkpoint_s))
        kept += saved * interval_s
    return kept / sum(failures)
