"""Steps: a Keras batch, or a turn of the user's loop that updates, predicts, calls or reads.

Everything in one turn is one step, however many functions and optimizers it takes (the two of a GAN, an agent's move
and its update). Training takes precedence: predictions, calls, or the reads of the hottest loop count as steps only in
a program that never trains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stoker.doctor.probes.loop_turns import LoopTurns, UserLoop
from stoker.doctor.probes.parts.steps import Phase, StepsPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import ACCOUNT_NAMES, PAUSED, SYNC, Recorder
from stoker.doctor.probes.spans import SpanWindows
from stoker.processors import ProcessorUse

# The classes of sources of steps: the best class with any steps is reported. Compiled and eager updates are one class.
TRAINING, EAGER_TRAINING, TAPES, INFERENCE, CALLS, LAYERS, READS = range(7)
# An inner loop with at most this many turns is part of the step around it, such as five updates of a critic before one
# of the generator.
_INNER_TURNS = 8
# A call of `fit` or `predict` with at most this many batches is itself only part of a step.
_FEW_BATCHES = 2
_MIN_CALLS = 5

# How many durations of single steps are kept. If there are more, every other one is dropped, and from then on only
# every second, fourth ... step is kept.
MAX_TIMES = 512
# How often the process's use of the processors is read at first, and how many readings are kept.
_USE_EVERY_NS, _MAX_USES = 50_000_000, 64


class _UseSamples:
    """Readings of the process's use of the processors, taken now and then at ends of steps."""

    def __init__(self) -> None:
        self._samples: list[tuple[int, ProcessorUse]] = []
        self._next = 0
        self._every_ns = _USE_EVERY_NS

    def note(self, now: int) -> None:
        """Take a reading, unless the last one is recent."""
        if now < self._next:
            return
        self._samples.append((now, ProcessorUse.up_to_now()))
        if len(self._samples) >= _MAX_USES:
            del self._samples[1::2]
            self._every_ns *= 2
        self._next = now + self._every_ns

    def between(self, start: int, end: int) -> ProcessorUse:
        """Return the processor use in this time, estimated from the readings in it; nothing if there are too few."""
        inside = [sample for sample in list(self._samples) if start <= sample[0] <= end]
        if len(inside) < 2:
            return ProcessorUse()
        (first, before), (last, after) = inside[0], inside[-1]
        return ProcessorUse(*(ns * (end - start) // (last - first) for ns in after.since(before)))


@dataclass
class StepCount:
    """Steps from one source: how many, and from when to when."""

    rank: int
    source: object
    books: Steps
    steps: int = 0
    # A tick is one step, or the several that one call runs.
    ticks: int = 0
    # The steps of the first tick, whose time was before `first_ns`.
    first_steps: int = 0
    examples: int = 0
    first_examples: int = 0
    first_ns: int = 0
    last_ns: int = 0
    # When the device was done with the first step and with the last: later than the host, if it runs beside it.
    first_done_ns: int = 0
    last_done_ns: int = 0
    # The times of single steps in nanoseconds, thinned to every `stride`-th.
    times: list[int] = field(default_factory=list)
    stride: int = 1
    # The recorder's totals at the end of the first step, and at the end of the last one.
    first_totals: list[int] = field(default_factory=list)
    last_totals: list[int] = field(default_factory=list)
    # The loops that this loop was seen inside.
    outer: set[UserLoop] = field(default_factory=set)
    # A turn in which only something minor has happened, such as a read, is not counted yet. This is the time of the
    # last such event, with the recorder's totals at that time.
    turning: tuple[int, list[int]] | None = None
    # The class and the source of the event that made the last tick; None if a loop of Keras reports its steps.
    event: tuple[int, object] | None = None
    _since_kept: int = 0
    _turn_examples: int = 0

    def tick(self, steps: int, examples: int, now: int, totals: list[int] | None = None) -> None:
        """Count `steps` steps over `examples` examples that ended at `now`, with the recorder's totals at that time."""
        recorder, windows = self.books.recorder, self.books.windows
        if recorder.top == PAUSED:
            recorder.on_wake()
        self.turning = None
        totals = totals or list(recorder.totals)
        done = now if recorder.queued is None else now + recorder.queued()
        if not self.steps:
            self.first_ns, self.first_steps, self.first_examples = now, steps, examples
            self.first_done_ns, self.first_totals = done, totals
        else:
            self._since_kept += 1
            if self._since_kept >= self.stride:
                self._since_kept = 0
                self.times.append((done - self.last_done_ns) // steps)
                if len(self.times) >= MAX_TIMES:
                    del self.times[::2]
                    self.stride *= 2
        self.steps += steps
        self.ticks += 1
        self._turn_examples = 0
        self.examples += examples
        self.last_ns, self.last_done_ns, self.last_totals = now, done, totals
        recorder.steps += self.rank < READS
        self.books.uses.note(now)
        recorder.window = windows.step_ended(now, self.rank, steps, self.source)
        if self.books.on_step_end is not None:
            self.books.on_step_end(self)
        if self.books.on_tick is not None:
            self.books.on_tick(self, now)

    def skip_to(self, now: int, totals: list[int]) -> None:
        """Move the end of the last step here: some steps were counted in a pause, without the time of each."""
        self.last_ns = self.last_done_ns = now
        self.last_totals = totals
        self.books.uses.note(now)

    def skip_time(self) -> None:
        """Do not keep the time from the last step to the next one."""
        self._since_kept = -1

    def postpone(self, turned: bool, now: int) -> None:
        """Note an event that is no step of its own if other events make the steps.

        A turn that the event opens waits to be counted.
        """
        if turned or self.turning is not None:
            self.turning = (now, list(self.books.recorder.totals))

    def settle(self) -> None:
        """Count a turn in which only reads happened."""
        if self.turning is not None:
            self.tick(1, 0, *self.turning)

    def end_first_again(self, now: int) -> None:
        """Move the end of the first step here: its supposed end was a read at its beginning."""
        recorder = self.books.recorder
        self.first_ns = self.first_done_ns = self.last_ns = self.last_done_ns = now
        self.first_totals = self.last_totals = list(recorder.totals)
        recorder.window = self.books.windows.begin_again(now)

    @property
    def drain_ns(self) -> int:
        """The extra time that the device took after the host, from the end of the first step to that of the last."""
        return max(0, self.last_done_ns - self.last_ns - (self.first_done_ns - self.first_ns))

    @property
    def elapsed_ns(self) -> int:
        """The time from the end of the first step to the end of the last, when its work was done."""
        return self.last_ns - self.first_ns + self.drain_ns

    def add_examples(self, examples: int) -> None:
        """Count the examples of a call inside the turn. Of several calls, the largest counts."""
        more = examples - self._turn_examples
        if more > 0:
            self._turn_examples = examples
            self.examples += more
            if self.ticks == 1:
                self.first_examples += more


class Steps(Probe):
    """All sources of steps of a run. This probe patches nothing: the other probes report what happened."""

    name = "steps"

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.windows = SpanWindows()
        self.uses = _UseSamples()
        self.sources: dict[tuple[int, object], StepCount] = {}
        # The number of open calls of Keras' `fit`, `evaluate` and `predict`. Their calls are not steps of their own.
        self.keras_depth = 0
        # How many times each of them was called, and how many times with only a few batches.
        self.keras_calls: dict[str, int] = {}
        self.short_calls: dict[str, int] = {}
        # A counter that rises with the work that the program gives to TensorFlow.
        self.work: Callable[[], int] = int
        self._work_seen = -1
        # The sources of events since the last turn of any loop.
        self._since_turn: set[object] = set()
        self.turns = LoopTurns(recorder.sites)
        # Called at the end of each step of any source, with the source's count.
        self.on_step_end: Callable[[StepCount], None] | None = None
        # Called after that, with the time; measuring may pause then.
        self.on_tick: Callable[[StepCount, int], None] | None = None
        self._loops: dict[UserLoop, StepCount] = {}
        # Whether any steps are more than layers, updates of variables or reads.
        self.trains_or_calls = False

    def measure(self, ended: bool) -> StepsPart:
        per_s, examples_per_s = self.rates()
        if self.recorder.on_main_thread():
            self.settle()
        phase = self.phase()
        return StepsPart(
            count=self.total(),
            per_s=per_s,
            examples_per_s=examples_per_s,
            ticks=self.recorder.steps,
            trains=0 <= phase.rank <= TAPES,
            phase=phase,
            windows=self.windows.all(),
        )

    def source(self, rank: int, source: object) -> StepCount:
        """Return the count of one source."""
        count = self.sources.get((rank, source))
        if count is None:
            count = self.sources[rank, source] = StepCount(rank, source, self)
            self.trains_or_calls = self.trains_or_calls or rank < LAYERS
        return count

    def tick(self, rank: int, source: object, steps: int, examples: int, now: int) -> None:
        """Count `steps` steps over `examples` examples that have just ended."""
        self.source(rank, source).tick(steps, examples, now)

    def event(self, rank: int, source: object, now: int, examples: int = 0) -> None:
        """Note an event that makes a step: one step of the loop around it, if the event opens a new turn of the loop.

        Outside all loops, each event of a `source` is a step.
        """
        # A call or an update is work by itself.
        worked = self.work() if rank >= LAYERS else -1
        # If one line of a library's caller steps two optimizers, that is one turn; so are all reads of one print.
        again = source in self._since_turn and (rank < LAYERS or worked != self._work_seen)
        loops = self.turns.list_loops_around(again)
        self._work_seen = worked
        if loops and loops[0][1]:
            self._since_turn.clear()
        self._since_turn.add(source)
        if not loops:
            if rank < LAYERS:
                alone = self.source(rank, source)
                alone.event = (rank, source)
                alone.tick(1, examples, now)
            return
        innermost, turned = loops[0]
        count = self._loops.get(innermost)
        if count is None:
            count = self._loops[innermost] = self.source(rank, innermost)
            count.outer.update(loop for loop, _ in loops[1:])
            count.event = (rank, source)
        elif rank < count.rank:
            late = rank < LAYERS <= count.rank and count.ticks == 1 and not turned
            count.rank = rank
            self.trains_or_calls = self.trains_or_calls or rank < LAYERS
            if late:
                count.end_first_again(now)
        for loop, turned in loops:
            self._count_turn(loop, turned, rank, source, now)
        if examples:
            count.add_examples(examples)

    def _count_turn(self, loop: UserLoop, turned: bool, rank: int, source: object, now: int) -> None:
        """Count a turn of a loop once its work is done, because a read may come before the call that it is made for."""
        count = self._loops.get(loop)
        if count is None:
            return
        if turned:
            count.settle()
        if rank >= LAYERS > count.rank:
            count.postpone(turned, now)
        elif turned or count.turning is not None or not count.steps:
            # A loop may be recognised only late in its first turn.
            count.event = (rank, source)
            count.tick(1, 0, now)

    def keras_call(self, name: str, rank: int, batches: int, now: int) -> None:
        """Note the end of a call of `fit` or `predict`. If it was for a batch or two, the loop around it steps."""
        self.keras_calls[name] = self.keras_calls.get(name, 0) + 1
        if batches <= _FEW_BATCHES:
            self.short_calls[name] = self.short_calls.get(name, 0) + 1
            self.event(rank, None, now)

    def settle(self) -> None:
        """Count the turns that wait to be counted, because the run is over."""
        for count in self._loops.values():
            count.settle()

    def reported(self) -> list[StepCount]:
        """Return the counts of the best class with any steps; for plain calls or reads, only the hottest count."""
        counts = [count for count in list(self.sources.values()) if count.steps]
        counts = [count for count in counts if not self._stands_for_calls(count, counts)]
        if not counts:
            return []
        best = max(EAGER_TRAINING, min(count.rank for count in counts))
        chosen = [count for count in counts if count.rank <= best]
        if best < CALLS:
            return _drop_nested_counts(chosen)
        span = max(count.last_ns - count.first_ns for count in chosen)
        hot = [count for count in chosen if (count.last_ns - count.first_ns) * 2 >= span]
        return [max(hot, key=lambda c: c.steps)]

    def _stands_for_calls(self, count: StepCount, counts: list[StepCount]) -> bool:
        """Return whether these are Keras batches, one or two per call, so that the turns around the calls are steps."""
        calls = self.short_calls.get(count.source, 0) if isinstance(count.source, str) else 0
        if calls < _MIN_CALLS or calls * 2 < self.keras_calls.get(str(count.source), 0):
            return False
        return any(isinstance(c.source, UserLoop) and c.rank <= count.rank for c in counts)

    def phase(self) -> Phase:
        """Return the stepping phase of the reported steps, over all their sources."""
        counts = [count for count in self.reported() if count.last_ns > count.first_ns]
        if not counts:
            return Phase()
        first, last = min(counts, key=lambda c: c.first_ns), max(counts, key=lambda c: c.last_ns)
        totals = [end - start for end, start in zip(last.last_totals, first.first_totals, strict=False)]
        # Sooner or later, the host waits for the rest, if only to read the result.
        totals[SYNC] += last.drain_ns
        return Phase(
            rank=first.rank,
            sources=frozenset(count.source for count in counts),
            first_ns=first.first_ns,
            last_ns=last.last_ns,
            ns=last.last_ns - first.first_ns + last.drain_ns,
            drain_ns=last.drain_ns,
            steps=sum(count.steps for count in counts) - first.first_steps,
            totals=dict(zip(ACCOUNT_NAMES, totals, strict=False)),
            use=self.uses.between(first.first_ns, last.last_ns),
            times=list(max(counts, key=lambda c: c.steps).times),
        )

    def mark_done(self, now: int) -> None:
        """Note that a read waited for the device, so all earlier work is done. For devices that do not report this."""
        for count in self.sources.values():
            if count.last_done_ns == count.last_ns:
                count.last_done_ns = now

    def total(self) -> int:
        """Return the number of steps so far."""
        return sum(count.steps for count in self.reported())

    def ticks(self) -> int:
        """Return how many times a step, or a call that runs several, has ended so far."""
        return sum(count.ticks for count in self.reported())

    def tick_seconds(self) -> float | None:
        """Return the time of a tick; None if unknown. A call that runs several steps shows nothing until it ends."""
        counts = self.reported()
        ticks = sum(count.ticks - 1 for count in counts)
        return sum(count.last_ns - count.first_ns for count in counts) / 1e9 / ticks if ticks > 0 else None

    def rates(self) -> tuple[float | None, float | None]:
        """Return steps and examples a second, from the end of each source's first step until its last step is done."""
        counts = self.reported()
        seconds = sum(count.elapsed_ns for count in counts) / 1e9
        if seconds <= 0:
            return None, None
        steps = sum(count.steps - count.first_steps for count in counts)
        examples = sum(count.examples - count.first_examples for count in counts)
        return steps / seconds, examples / seconds if examples else None


def _drop_nested_counts(counts: list[StepCount]) -> list[StepCount]:
    """Drop the counts of nested loops. The outer loop is the step, unless the inner one turns far more often."""
    loops = {count.source: count for count in counts if isinstance(count.source, UserLoop)}
    dropped: set[object] = set()
    for inner in loops.values():
        for loop in inner.outer & loops.keys():
            outer = loops[loop]
            dropped.add(outer.source if inner.steps > _INNER_TURNS * outer.steps else inner.source)
    return [count for count in counts if count.source not in dropped]
