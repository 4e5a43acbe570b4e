"""A stretch of steps that was measured in full, and the estimate of the pause after it.

Time in a pause is shared out in the proportions of the stretch; counts grow as they did per step. Steps themselves are
exact: the stretch shows which event makes the steps of a source, and that event is always counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import CHECKPOINT, STARTUP, TEARDOWN, TRACE, Recorder
from stoker.doctor.probes.steps import READS, StepCount

# Reads how many times an event that makes steps has happened.
Reader = Callable[[], int]
# Accounts whose probes also measure in pauses.
_ALWAYS_MEASURED = (STARTUP, TRACE, CHECKPOINT, TEARDOWN)


@dataclass
class Growth:
    """The growth of one of a probe's numbers in a stretch."""

    owner: object
    name: str
    is_time: bool
    amount: int
    # How much was added to the number in the current pause.
    added: int = 0

    def add(self, part: int, whole: int) -> None:
        """Make the number's growth since the pause began `part / whole` of its amount."""
        due = self.amount * part // whole
        setattr(self.owner, self.name, getattr(self.owner, self.name) + due - self.added)
        self.added = due


@dataclass
class Driver:
    """The event that makes the ticks of a source: it happens `per_tick` times for each tick."""

    count: StepCount
    read: Reader
    per_tick: int
    ticks: int
    examples: int
    # Whether the probe that sees the event counts the steps itself.
    counts_itself: bool
    _seen: int = 0
    _carried: int = 0

    def begin(self) -> None:
        """Begin a pause."""
        self._seen, self._carried = self.read(), 0

    def advance(self) -> int:
        """Return the ticks since the last call, after counting them if nothing else has."""
        ticks = (self.read() - self._seen) // self.per_tick
        self._seen += ticks * self.per_tick
        if not self.counts_itself:
            self.count.steps += ticks
            self.count.ticks += ticks
            examples, self._carried = divmod(self._carried + ticks * self.examples, self.ticks)
            self.count.examples += examples
        return ticks


class MeasuredStretch:
    """The measurements from the end of one step of a source to the end of a later one."""

    def __init__(self, anchor: StepCount, now: int, recorder: Recorder, ops: int) -> None:
        self.anchor = anchor
        self.start_ns = self.last_ns = now
        self.ns = self.ticks = 0
        self.ops = ops
        self.totals = list(recorder.totals)
        self.growths: dict[tuple[int, str], Growth] = {}
        self._first_tick = anchor.ticks
        self._values: dict[tuple[int, str], int] = {}
        self._counts: list[tuple[StepCount, int, int, int]] = []

    def begin(self, probes: Iterable[Probe], counts: Iterable[StepCount], reader_of: _ReaderOf) -> None:
        """Note all values at the beginning."""
        self._values = {(id(owner), name): value for owner, name, _, value in _amounts(probes)}
        for count in counts:
            read = reader_of(count)
            self._counts.append((count, count.ticks, count.examples, read() if read is not None else 0))

    def ticks_so_far(self) -> int:
        """Return the steps seen so far of the source that the stretch began with."""
        return self.anchor.ticks - self._first_tick

    def end(self, probes: Iterable[Probe], recorder: Recorder, ops: int) -> None:
        """Note what has happened since the beginning."""
        self.ns, self.ticks, self.ops = self.last_ns - self.start_ns, self.ticks_so_far(), ops - self.ops
        self.totals = [after - before for after, before in zip(recorder.totals, self.totals, strict=True)]
        for owner, name, is_time, value in _amounts(probes):
            amount = value - self._values.get((id(owner), name), 0)
            if amount > 0:
                self.growths[id(owner), name] = Growth(owner, name, is_time, amount)
        self._values = {}

    def find_drivers(self, reader_of: _ReaderOf) -> list[Driver] | None:
        """Return what makes the steps of each source; None if that is unclear for the source that it began with."""
        found: list[Driver] = []
        for count, ticks_before, examples_before, read_before in self._counts:
            ticks, read = count.ticks - ticks_before, reader_of(count)
            if not ticks:
                continue
            events = read() - read_before if read is not None else 0
            if read is None or events % ticks or not events:
                if count is self.anchor:
                    return None
                # The counts grow as they did per step.
                for name in ("ticks", "steps"):
                    self.growths[id(count), name] = Growth(count, name, False, ticks)
                continue
            examples = count.examples - examples_before
            itself = isinstance(count.source, str) and count.event is None
            found.append(Driver(count, read, events // ticks, ticks, examples, itself))
        return sorted(found, key=lambda driver: driver.count is not self.anchor)

    def is_disturbed(self) -> bool:
        """Return whether something happened that does not belong to an ordinary step."""
        return any(self.totals[account] for account in _ALWAYS_MEASURED)

    @property
    def step_ns(self) -> float:
        """The time of a step."""
        return self.ns / self.ticks

    def resembles(self, other: MeasuredStretch, tolerance: float) -> bool:
        """Return whether the steps of both stretches come from one source and take about the same time."""
        return self.anchor is other.anchor and abs(self.step_ns / other.step_ns - 1) <= tolerance


_ReaderOf = Callable[[StepCount], Reader | None]


@dataclass
class Estimate:
    """The estimate of a pause, from the stretches before it."""

    stretches: list[MeasuredStretch]
    drivers: list[Driver]
    # The account of time outside steps.
    base: int
    ns: int = field(init=False)
    ticks: int = field(init=False)
    totals: list[int] = field(init=False)
    growths: list[Growth] = field(init=False)
    _part_ns: int = 0
    _part_ticks: int = 0
    _added: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ns = sum(stretch.ns for stretch in self.stretches)
        self.ticks = sum(stretch.ticks for stretch in self.stretches)
        self.totals = [sum(each) for each in zip(*(s.totals for s in self.stretches), strict=True)]
        self._added = [0] * len(self.totals)
        sums: dict[tuple[int, str], Growth] = {}
        for stretch in self.stretches:
            for key, one in stretch.growths.items():
                kept = sums.setdefault(key, Growth(one.owner, one.name, one.is_time, 0))
                kept.amount += one.amount
        self.growths = list(sums.values())
        for driver in self.drivers:
            driver.begin()

    @property
    def step_ns(self) -> float:
        """The time of a step."""
        return self.ns / self.ticks

    def count_steps(self, recorder: Recorder) -> tuple[int, list[StepCount]]:
        """Count the steps since the last call. Return those of the anchor, and the counts of sources that had any."""
        advanced = [(driver.count, driver.advance()) for driver in self.drivers]
        recorder.steps += sum(ticks for count, ticks in advanced if count.rank < READS)
        return advanced[0][1], [count for count, ticks in advanced if ticks]

    def share_out(self, ns: int, ticks: int, spread: list[int]) -> None:
        """Divide this much time, and this many steps, among the accounts and whatever the probes count."""
        self._part_ns += ns
        self._part_ticks += ticks
        whole = sum(self.totals)
        left = ns
        for account, total in enumerate(self.totals):
            due = total * self._part_ns // whole
            spread[account] += due - self._added[account]
            left -= due - self._added[account]
            self._added[account] = due
        spread[self.base] += left
        self._added[self.base] += left
        for growth in self.growths:
            if growth.is_time:
                growth.add(self._part_ns, self.ns)
            else:
                growth.add(self._part_ticks, self.ticks)


def _amounts(probes: Iterable[Probe]) -> Iterable[tuple[object, str, bool, int]]:
    for probe in probes:
        for owner, counts, times in probe.list_growing():
            for name in counts:
                yield owner, name, False, getattr(owner, name)
            for name in times:
                yield owner, name, True, getattr(owner, name)
