"""The steps of an epoch, counted as Keras does: passes over the data, `steps_per_epoch`, data that runs out."""

from __future__ import annotations

import warnings
from typing import Protocol, TypedDict, runtime_checkable

from stoker.tf_internals.keras_data import py_dataset
from stoker.tf_internals.types import Data, DataAdapter, Model
from stoker.train.execution.feed import BatchFeed, FeedPosition

_RAN_OUT = (
    "Your input ran out of data; interrupting training. Make sure that your dataset or generator can generate at "
    "least `steps_per_epoch * epochs` batches. You may need to use the `.repeat()` function when building your dataset."
)


@runtime_checkable
class Stateful(Protocol):
    """A `PyDataset` or callback that can save and restore its state."""

    def get_state(self) -> object: ...

    def set_state(self, state: object) -> None: ...


class EpochPosition(TypedDict):
    """The place of a run in its epochs and passes, as a checkpoint keeps it."""

    ended: int
    data: object
    passes: int
    step: int
    taken: int
    open: bool
    out: bool
    feed: FeedPosition


def steps_per_execution(model: Model) -> int:
    """Return the `steps_per_execution` that `compile` set; a trainer's model need not be compiled."""
    return int(getattr(model, "steps_per_execution", 1))


def whole_executions(steps: int, steps_per_execution: int) -> int:
    """Round the number of steps up to whole executions, as Keras runs them."""
    return -(-steps // steps_per_execution) * steps_per_execution


class EpochSteps:
    """Counts steps in epochs and passes. With `steps_per_epoch`, a pass may span epochs."""

    def __init__(
        self,
        feed: BatchFeed,
        steps_per_epoch: int | None,
        adapter: DataAdapter = None,
        steps_per_execution: int = 1,
    ) -> None:
        self.feed = feed
        self.steps_per_epoch = steps_per_epoch
        self._per_execution = steps_per_execution
        self.passes = 0
        self.step = 0
        self.taken = 0
        self._open = False
        self._out = False
        self._adapter = adapter
        self._ended = 0

    @property
    def target(self) -> int | None:
        """The steps in an epoch as callbacks see them; None if only the end of the data tells."""
        return self.steps_per_epoch or self.feed.steps

    def reset(self) -> None:
        """Drop the current pass: the next epoch begins a new one."""
        self._open = False
        self.taken = 0
        if self._adapter is not None:
            self._adapter.on_epoch_end()

    def begin_epoch(self) -> None:
        self.step = 0
        self._out = False
        if self._adapter is not None:
            self._adapter.on_epoch_begin()
        if not self._open or self.steps_per_epoch is None:
            self._begin_pass()

    def _begin_pass(self) -> None:
        self.feed.begin_epoch(self.passes)
        self.passes += 1
        self.taken = 0
        self._open = True

    def room(self) -> int | None:
        """Return how many steps may run in one call from here: 0 if the epoch is over, None if unknown."""
        if self._out:
            return 0
        limits = []
        if self.target is not None:
            limits.append(whole_executions(self.target, self._per_execution) - self.step)
        if self.feed.steps is not None:
            left = self.feed.steps - self.taken
            if left <= 0 and self.steps_per_epoch and self.step < self.steps_per_epoch:
                self.note_end_of_data()
                return 0
            limits.append(left)
        return max(min(limits), 0) if limits else None

    def advance(self, asked: int, ran: int) -> None:
        """Count `ran` of the `asked` steps; fewer mean that the data ran out."""
        self.step += ran
        self.taken += ran
        if ran < asked:
            self.note_end_of_data()

    def note_end_of_data(self) -> None:
        """Note that the data ended before the epoch did, or within its last execution."""
        if self.steps_per_epoch is None or self.step < self.steps_per_epoch:
            warnings.warn(_RAN_OUT, stacklevel=2)
        self._out = True
        self._open = False

    def end_epoch(self) -> None:
        self._ended += 1
        if self.feed.steps is not None and self.taken >= self.feed.steps:
            self._open = False
        if self._adapter is not None:
            self._adapter.on_epoch_end()

    def position(self) -> EpochPosition:
        """Return the current position in values that a checkpoint can store."""
        own = self._own_data
        return {
            "ended": self._ended,
            "data": own.get_state() if isinstance(own, Stateful) else None,
            "passes": self.passes,
            "step": self.step,
            "taken": self.taken,
            "open": self._open,
            "out": self._out,
            "feed": {**self.feed.position(), "taken": self.taken},
        }

    @property
    def _own_data(self) -> Data:
        """The user's `PyDataset`, if the data is one."""
        return py_dataset(self._adapter)

    def repeat_epochs(self, position: EpochPosition) -> None:
        """Tell a `PyDataset` about the epochs before `position`: many change their order at the end of each epoch."""
        own = self._own_data
        if isinstance(own, Stateful):
            own.set_state(position["data"])
        elif own is not None:
            for _ in range(int(position["ended"]) - self._ended):
                own.on_epoch_begin()
                own.on_epoch_end()
        self._ended = int(position["ended"])

    def seek(self, position: EpochPosition, blob: bytes | None = None, *, begun: bool = True) -> None:
        """Go to where `position` was taken: inside an epoch that has begun, or between two epochs."""
        self.passes = int(position["passes"])
        self.step = int(position["step"])
        self.taken = int(position["taken"])
        self._open = bool(position["open"])
        self._out = bool(position["out"])
        if begun and self._adapter is not None:
            self._adapter.on_epoch_begin()
        self.feed.seek(position["feed"], blob)
