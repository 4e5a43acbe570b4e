"""Steps of one kind over one feed, a compiled call at a time: a training, or an evaluation."""

from __future__ import annotations

import tensorflow as tf

from stoker import clock
from stoker.train.execution.epoch_steps import EpochSteps
from stoker.train.execution.loop import CompiledLoop, Logs, numbers

# A call this long hides a millisecond of host work around it (under 1 %), and the bar moves twice a second and more.
CALL_SECONDS = 0.3
_FIRST = 16
_GROWTH = 16


class CallLength:
    """How many steps a call runs: enough that the host's share vanishes, few enough that the bar moves.

    Grows or shrinks the calls towards `CALL_SECONDS`, unless their length is fixed. However the steps are cut into
    calls, they compute the same bits, so this may follow the clock.
    """

    def __init__(self, fixed: int | None = None, step_seconds: float | None = None) -> None:
        self.fixed = fixed
        self.steps = fixed or _FIRST
        self.step_seconds = step_seconds
        if fixed is None and step_seconds:
            self.steps = max(1, int(CALL_SECONDS / step_seconds))

    def ask(self, room: int | None) -> int:
        """The number of steps to run now, at most `room`."""
        return self.steps if room is None else min(self.steps, room)

    def record(self, steps: int, seconds: float) -> None:
        """Record how long a call took. The first call compiled, so it does not count."""
        if steps == 0:
            return
        first, self.step_seconds = self.step_seconds is None, seconds / steps
        if self.fixed is not None or first:
            return
        wanted = int(CALL_SECONDS * steps / max(seconds, 1e-9))
        self.steps = max(1, min(wanted, self.steps * _GROWTH))


class Stretch:
    """A loop, where in the data it is, and how many steps its calls run."""

    def __init__(
        self, loop: CompiledLoop, epoch_steps: EpochSteps, length: CallLength, steps_per_execution: int = 1
    ) -> None:
        self.loop = loop
        self.epoch_steps = epoch_steps
        self.length = length
        self.last_index = -1
        """The number of the last call's last batch, as callbacks receive it."""
        self._per_execution = steps_per_execution

    def next_length(self, limit: int | None = None) -> int:
        """How many steps the next call would run: 0 when the epoch is over."""
        room = self.epoch_steps.room()
        return 0 if room == 0 else self.length.ask(room if limit is None else min(room or limit, limit))

    def call(self, asked: int, limit: int | None = None) -> tuple[int, Logs]:
        """One compiled call: how many steps it ran, and the last one's logs as numbers.

        Args:
            asked: how many to run.
            limit: what bounded `asked`, if anything did.
        """
        first = self.epoch_steps.step
        # Not once for all: the same loop may have run over other data since, for a callback that evaluates.
        self.loop.feed = self.epoch_steps.feed
        begin = clock.now_ns()
        try:
            logs = self.loop.run(self.epoch_steps.taken, asked)
            ran = self.loop.ran
        except tf.errors.OutOfRangeError:
            # A dataset that promised more batches than it has.
            ran, logs = 0, {}
            self.epoch_steps.note_end_of_data()
        else:
            self.epoch_steps.advance(asked, ran)
        self.last_index = self._index_after(first, limit)
        values = numbers(logs) if ran else {}
        warm = self.length.step_seconds is not None
        self.length.record(ran, (clock.now_ns() - begin) / 1e9)
        if warm:
            self.loop.step_seconds = self.length.step_seconds
        return ran, values

    def _index_after(self, first: int, limit: int | None) -> int:
        """Keras counts an execution in full, even if the data ends within it."""
        whole = self._per_execution
        if self.length.fixed == whole and (limit is None or limit >= whole):
            return first + whole - 1
        return self.epoch_steps.step - 1
