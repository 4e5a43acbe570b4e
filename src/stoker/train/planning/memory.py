"""Chooses the fewest parts of a batch with which a step fits into the device's memory, by measuring.

The memory of a step grows linearly with the rows of a part. Steps with small parts give the line, and the line gives a
number of parts. A step with this number is tried, and one with one part fewer if the line leaves that open. TensorFlow
counts the bytes, on a GPU as on the software GPU; on a CPU it counts none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import keras
import tensorflow as tf

from stoker import units
from stoker.errors import ArgumentError
from stoker.tf_internals import datasets, pipelines
from stoker.tf_internals.devices import memory_limits
from stoker.tf_internals.keras_data import dataset_in
from stoker.tf_internals.types import Model
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.feeding.resident import Resident, map_leaves
from stoker.train.execution.feeding.sources import DataSource
from stoker.train.execution.loop import CompiledLoop
from stoker.train.execution.parts import Cut
from stoker.train.planning.largest_batch import BatchTooLargeError
from stoker.train.planning.trials import Snapshot

AUTO = "auto"
# "auto" leaves this share of the device's memory for what a few steps do not show, such as fragments that are too
# small.
_SPARE = 0.05
# How far the line may be off: one part fewer is tried if the line exceeds the limit by no more than this.
_UNSURE = 0.05
# The numbers of parts with which the line is found.
_SMALL_PARTS = (16, 8)
# Independent ops run in either order, so some steps need more memory than others: measure this many.
_STEPS = 4


def parse_memory(given: object) -> int | str | None:
    """Return the bytes in the value of `memory=`, or "auto", or None.

    Raises:
        ArgumentError: the value is not one of these.
    """
    if given is None or given == AUTO:
        return AUTO if given == AUTO else None
    found = units.bytes_of(given) if isinstance(given, str) else given
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise ArgumentError(f'memory={given!r}: give "auto", a size such as "14GiB", or a number of bytes')
    return found


def find_batch_rows(data: DataSource) -> int | None:
    """Return the rows of a batch, as the data or the operations of its pipeline show."""
    stage = dataset_in(data.adapter)
    if data.batch_size is not None or not isinstance(stage, tf.data.Dataset):
        return data.batch_size
    # A map over batches seldom changes their number of rows, but TensorFlow does not look behind it.
    while (rows := pipelines.batch_size_of(stage)) < 1:
        before = datasets.inputs(stage)
        if len(before) != 1:
            return None
        (stage,) = before
    return rows


def make_trial_feed(data: DataSource, feed: BatchFeed, batch_rows: int) -> BatchFeed | None:
    """Return batches for trials: the data's own if they can be read again, else zeros; None if the shape is unknown."""
    if data.rows is not None:
        return feed
    specs = [one for one in keras.tree.flatten(feed.spec()) if one is not None]
    if not all(isinstance(one, tf.TensorSpec) and one.shape[1:].is_fully_defined() for one in specs):
        return None

    def make(spec: tf.TensorSpec) -> tf.Tensor:
        shape = [batch_rows, *spec.shape[1:]]
        return tf.fill(shape, "") if spec.dtype == tf.string else tf.zeros(shape, spec.dtype)

    return Resident(map_leaves(make, feed.spec()), batch_rows)


@dataclass(frozen=True)
class PartsChoice:
    """The number of parts, the reason, and the bytes behind the decision."""

    parts: int
    reason: str
    figures: dict[str, float]


@dataclass
class MemoryTrials:
    """Trials of a training step with its batch in more or fewer parts. The state is restored after each trial.

    Attributes:
        make_loop: returns the loop that takes its batch in the given parts, or whole.
        feed: the data to try it on.
        rows: the rows of a batch on one replica.
        limit: how many bytes a step may need; None for what the device has.
        model: the model that is trained.
    """

    make_loop: Callable[[Cut | None], CompiledLoop]
    feed: BatchFeed
    rows: int
    limit: int | None
    model: Model
    # The peak in bytes, by number of parts; infinite if there was not enough memory.
    peaks: dict[int, float] = field(default_factory=dict)

    def choose(self) -> PartsChoice:
        """Return the fewest parts that fit.

        Raises:
            BatchTooLargeError: a single row at a time does not fit.
        """
        if self.limit is None:
            self.limit = self._find_capacity()
        start = [self._fewest_as_small(min(parts, self.rows)) for parts in _SMALL_PARTS]
        if not all(self._fits(parts) for parts in start) and not self._fits(self.rows):
            raise BatchTooLargeError(
                f"a step on a single row needs {self._show(self.rows)}, but only {units.size(self.limit)} is "
                "available: use a smaller model"
            )
        parts = self._find_first() if self.rows > 1 else 1
        while not self._fits(parts):
            # The trials so far improve the line.
            smaller = max(self._find_first(), self._find_smaller(parts))
            parts = min(smaller, *(one for one, peak in self.peaks.items() if peak <= self.limit))
        while parts > 1:
            larger = self._fewest_as_small(parts - 1)
            if not (self._may_fit(larger) and self._fits(larger)):
                break
            parts = larger
        return self._describe(parts)

    def _find_smaller(self, parts: int) -> int:
        """Return the smallest number of parts in which each part has at least one row fewer."""
        return -(-self.rows // max(-(-self.rows // parts) - 1, 1))

    def _fewest_as_small(self, parts: int) -> int:
        """Return the fewest parts of the same size: a batch of 10 rows in 6 parts has 5 parts of 2 rows."""
        return -(-self.rows // -(-self.rows // parts))

    def estimate(self, parts: int) -> float:
        """Estimate the peak in bytes with this many parts, by the line through the two largest parts tried so far."""
        known = sorted(
            (-(-self.rows // one), peak) for one, peak in self.peaks.items() if peak < math.inf and one > 1
        )
        rows = -(-self.rows // parts)
        (few, low), (many, high) = known[-2:] if len(known) > 1 else known * 2
        slope = (high - low) / (many - few) if many > few else 0.0
        return high + max(slope, 0.0) * (rows - many) - (self._sum_bytes() if parts == 1 else 0)

    def _sum_bytes(self) -> int:
        """Return the bytes of the sums of gradients over the parts, which a whole batch does not need."""
        return sum(
            int(one.value.dtype.size * one.value.shape.num_elements())
            for one in self.model.trainable_variables
        )

    def _find_first(self) -> int:
        """Return the smallest number of parts that should fit, by the line."""
        assert self.limit is not None
        return next((k for k in range(1, self.rows) if self.estimate(k) <= self.limit), self.rows)

    def _may_fit(self, parts: int) -> bool:
        assert self.limit is not None
        return self.estimate(parts) <= self.limit * (1 + _UNSURE)

    def _fits(self, parts: int) -> bool:
        assert self.limit is not None
        if parts not in self.peaks:
            self.peaks[parts] = self._measure(parts)
        return self.peaks[parts] <= self.limit

    def _measure(self, parts: int) -> float:
        loop = self.make_loop(None if parts == 1 else Cut(parts, self.rows))
        try:
            concrete = loop.build()
            with tf.device("CPU:0"):
                # The copies go to the host, so that only the step counts, not the state for restoring it.
                state = Snapshot.of_step(concrete)
        except tf.errors.ResourceExhaustedError:
            return math.inf
        try:
            # The first step may try out kernels.
            self._run(loop, 1)
            for name in _list_devices():
                tf.config.experimental.reset_memory_stats(name)
            self._run(loop, _STEPS)
            return max(_read_memory(name, "peak") for name in _list_devices())
        except tf.errors.ResourceExhaustedError:
            return math.inf
        finally:
            state.restore()

    def _run(self, loop: CompiledLoop, steps: int) -> None:
        self.feed.begin_epoch(0)
        for value in tf.nest.flatten(loop.run(0, min(steps, self.feed.steps or steps))):
            value.numpy()

    def _find_capacity(self) -> int:
        """Return the memory of the smallest device, less the spare share."""
        limits = memory_limits()
        return int(min(limits[name] for name in _list_devices()) * (1 - _SPARE))

    def _describe(self, parts: int) -> PartsChoice:
        assert self.limit is not None
        whole = self.peaks.get(1, math.inf)
        whole = whole if whole < math.inf else self.estimate(1)
        figures: dict[str, float] = {
            "memory_limit_bytes": self.limit,
            "peak_bytes": self.peaks[parts],
            "whole_batch_bytes": round(whole),
        }
        room = f"{units.size(self.peaks[parts])} of {units.size(self.limit)}"
        if parts == 1:
            return PartsChoice(1, f"the whole batch needs {room}", figures)
        rows = -(-self.rows // parts)
        figures["part_rows"] = rows
        each = units.quantity(rows, "row")
        needed = f"the whole batch would need {units.size(whole)}"
        return PartsChoice(parts, f"parts of {each} need {room}, {needed}", figures)

    def _show(self, parts: int) -> str:
        peak = self.peaks[parts]
        return units.size(peak) if peak < math.inf else "more than the device has"


def counts_memory() -> bool:
    """Return whether TensorFlow counts the bytes of a device here."""
    return bool(_list_devices())


def _list_devices() -> list[str]:
    return [f"GPU:{number}" for number, _ in enumerate(tf.config.list_logical_devices("GPU"))]


def _read_memory(name: str, which: str) -> int:
    return int(tf.config.experimental.get_memory_info(name)[which])
