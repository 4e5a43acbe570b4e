"""Replay a program's steps, event by event: a host thread, a device alongside it, and an input pipeline.

The host goes from piece to piece. Work for an asynchronous device joins the device's queue; a read waits until the
queue is empty. The host waits for an element made ahead until it is there; one made on demand takes its full time.
If more threads want processors than there are, kernels take longer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from stoker.doctor.replay.pieces import PYTHON, TIMED, Piece, python_s
from stoker.doctor.replay.program import Program, Source, is_element

_ROUNDS = 3
# How many times as long Python takes beside a thread that always wants its lock. At best each thread has the lock half
# of the time. A thread that releases it, as every op does, may wait five milliseconds to get it back.
_LOCK = (1.5, 5.0)
# Accounts of Python's work that launches kernels.
_DISPATCHING = frozenset({"dispatch", "launch", "eager"})
# The length of the stretches from which a run is reassembled: a machine's slow moment lasts longer than a step.
_STRETCH = 8


@dataclass(frozen=True)
class Draw:
    """A choice of values for everything uncertain. `Draw()` chooses the middle of every range."""

    places: Mapping[str, float] = field(default_factory=dict)
    # Which steps to replay, both before and after the repair; None for all.
    steps: tuple[int, ...] | None = None

    def between(self, low: float, high: float, what: str) -> float:
        """Return the chosen value of a range, on a logarithmic scale."""
        if low <= 0 or high <= low:
            return max(low, high)
        return low * math.exp(math.log(high / low) * self.places.get(what, 0.5))


def draws(program: Program, names: list[str], count: int) -> list[Draw]:
    """Return draws that reassemble the run from its stretches and choose all uncertain values again. Deterministic."""
    # Imported only to compute a price: `stoker check` loads this module with the stalls and must start quickly.
    import random

    chance = random.Random(7)
    total = len(program.steps)
    length = min(total, _STRETCH)

    def another_run() -> tuple[int, ...]:
        starts = [chance.randrange(total) for _ in range(max(1, total // length))]
        return tuple((start + i) % total for start in starts for i in range(length))

    return [Draw({name: chance.random() for name in names}, another_run()) for _ in range(count)]


def seconds_per_step(program: Program, draw: Draw, which: tuple[int, ...] | None = None) -> float:
    """Return the seconds of one step when the program, or only the given steps of it, are replayed."""
    source, measured = program.source, program.measured
    steps = program.steps if which is None else [program.steps[i] for i in which]
    if source is None or measured is None:
        return replay(steps, source, program.asynchronous)
    # The pieces were measured beside the old input (`measured`), but now run beside the present one (`source`).
    kernels, lock = slowdowns(program, measured, measured.duty, draw)
    steps = [[_as_beside_input(piece, kernels) for piece in one] for one in steps]
    step, duty, made = program.step_s, measured.duty, source
    for _ in range(_ROUNDS):
        kernels_now, lock_now = slowdowns(program, source, duty, draw)
        slower = {"compute": kernels_now / kernels, **dict.fromkeys(PYTHON, lock_now / lock)}
        python = python_s(steps, program.eager_kernels) * lock_now / lock
        made = _beside_python(source, program, python, step, draw)
        step = replay(steps, made, program.asynchronous, slower)
        duty = min(1.0, source.seconds / step) if source.ahead and step > 0 else 0.0
    return max(step, _work(steps, program, made, kernels, lock) / program.cores)


def _as_beside_input(piece: Piece, slowdown: float) -> Piece:
    """Return a piece as it would have been alongside the input. Only pieces that were timed alone change."""
    return replace(piece, seconds=piece.seconds * slowdown) if piece.name == TIMED else piece


def slowdowns(program: Program, source: Source, duty: float, draw: Draw) -> tuple[float, float]:
    """Return two factors: how much the input slows down kernels, and how much a Python input slows down Python."""
    threads = program.kernel_threads + source.threads
    crowded = 1.0
    if threads > program.cores and not program.asynchronous:
        fair = threads / program.cores
        # A kernel ends with its slowest thread, which shares its processor; at best, all threads share fairly.
        slowest = max(fair, 1.0 + math.ceil(source.threads / program.cores))
        crowded = draw.between(fair, slowest * slowest / fair, "crowding")
    lock = _lock(draw) if source.python else 1.0
    return 1 + (crowded - 1) * duty, 1 + (lock - 1) * duty


def _lock(draw: Draw) -> float:
    """Return the factor by which a thread that always wants Python's lock slows down another thread's Python."""
    return draw.between(*_LOCK, "lock")


def _beside_python(source: Source, program: Program, python: float, step_s: float, draw: Draw) -> Source:
    """Return the input, slowed down by the host's Python as it is now, not as it was in the measurement."""
    if not source.python or step_s <= 0:
        return source
    now = 1 + (_lock(draw) - 1) * min(1.0, python / step_s)
    return replace(source, seconds=source.seconds * now / wait_for_lock(program, draw))


def wait_for_lock(program: Program, draw: Draw) -> float:
    """Return the factor by which the host's Python slowed down a Python input in the measurement."""
    return 1 + (_lock(draw) - 1) * min(1.0, program.python_s / program.step_s)


def _work(steps: list[list[Piece]], program: Program, source: Source, slowdown: float, lock: float) -> float:
    """Return the processor seconds of a step whose input is made ahead. On average, a step lasts until they are done.

    The pieces were measured while kernels took `slowdown` times and Python `lock` times as long.
    """
    if not source.ahead or program.asynchronous:
        return 0.0
    kernels = sum(p.seconds for s in steps for p in s if p.account == "compute") / len(steps) / slowdown
    host = sum(p.seconds for s in steps for p in s if p.account in _DISPATCHING) / len(steps) / lock
    return kernels * program.kernel_threads + host + source.seconds * source.threads / slowdown


def replay(
    steps: list[list[Piece]],
    source: Source | None,
    asynchronous: bool,
    slower: Mapping[str, float] = MappingProxyType({}),
) -> float:
    """Return the seconds of a step if these steps repeat forever: only the second round counts.

    `slower` holds the factor by which the pieces of an account slow down.
    """
    if not asynchronous and (source is None or not source.ahead):
        # Everything happens one after the other.
        return sum(p.seconds * slower.get(p.account, 1.0) for s in steps for p in s) / max(1, len(steps))
    host = device = made_until = started = 0.0
    taken: list[float] = []
    for number, step in enumerate([*steps, *steps]):
        if number == len(steps):
            started = max(host, device)
        for piece in step:
            if source is not None and source.ahead and is_element(piece):
                # The pipeline makes elements as long as its buffer has room.
                room = taken[-source.ahead] if len(taken) >= source.ahead else 0.0
                made_until = max(made_until, room) + source.seconds
                host = max(host, made_until)
                taken.append(host)
                continue
            if piece.account == "sync" and asynchronous:
                host = max(host, device) + piece.seconds - piece.wait
                continue
            seconds = piece.seconds * slower.get(piece.account, 1.0)
            if piece.device or piece.tail:
                device = max(max(device, host) + piece.device, host + seconds + piece.tail)
            host += seconds
    return (max(host, device) - started) / max(1, len(steps))
