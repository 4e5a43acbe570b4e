"""Steps of one kind over one feed, one compiled call at a time: a training or an evaluation."""

from __future__ import annotations

import tensorflow as tf

from stoker import clock
from stoker.train.execution.epoch_steps import EpochSteps
from stoker.train.execution.loop import CompiledLoop, Logs, numbers

# A call this long hides a millisecond of host work around it (under 1 %), and still moves the bar twice a second or
# more.
CALL_SECONDS = 0.3
_FIRST = 16
_GROWTH = 16


class CallLength:
    """The number of steps in a call: enough to make the host's share vanish, few enough to keep the bar moving.

    The length of calls grows or shrinks towards `CALL_SECONDS`, unless it is fixed. However the steps are cut into
    calls, they compute the same bits, so the length may depend on the clock.
    """

    def __init__(self, fixed: int | None = None, step_seconds: float | None = None) -> None:
        self.fixed = fixed
        self.steps = fixed or _FIRST
        self.step_seconds = step_seconds
        if fixed is None and step_seconds:
            self.steps = max(1, int(CALL_SECONDS / step_seconds))

    def ask(self, room: int | None) -> int:
        """Return the number of steps to run now, at most `room`."""
        return self.steps if room is None else min(self.steps, room)

    def record(self, steps: int, seconds: float) -> None:
        """Record how long a call took. The first call does not count, because it compiles."""
        if steps == 0:
            return
        first, self.step_seconds = self.step_seconds is None, seconds / steps
        if self.fixed is not None or first:
            return
        wanted = int(CALL_SECONDS * steps / max(seconds, 1e-9))
        self.steps = max(1, min(wanted, self.steps * _GROWTH))


class Stretch:
    """A loop, its place in the data, and how many steps its calls run."""

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
        """Return how many steps the next call would run: 0 if the epoch is over."""
        room = self.epoch_steps.room()
        return 0 if room == 0 else self.length.ask(room if limit is None else min(room or limit, limit))

    def call(self, asked: int, limit: int | None = None) -> tuple[int, Logs]:
        """Make one compiled call; return how many steps it ran, and the last step's logs as numbers.

        Args:
            asked: how many steps to run.
            limit: the limit on `asked`, if there was one.
        """
        first = self.epoch_steps.step
        # Set the feed at each call: for a callback that evaluates, the same loop may have run over other data since.
        self.loop.feed = self.epoch_steps.feed
        begin = clock.now_ns()
        try:
            logs = self.loop.run(self.epoch_steps.taken, asked)
            ran = self.loop.ran
        except tf.errors.OutOfRangeError:
            # The dataset promised more batches than it has.
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
        """Return the last batch's number. Keras counts an execution in full, even if the data ends within it."""
        whole = self._per_execution
        if self.length.fixed == whole and (limit is None or limit >= whole):
            return first + whole - 1
        return self.epoch_steps.step - 1
