"""One evaluation: the steps of a test over a feed, with Keras' callbacks around them.

Training, `stoker.Trainer.evaluate` and `stoker.evaluate` use it for their evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

import keras

from stoker.tf_internals.keras_training import SORTS_RESULTS, to_numbers
from stoker.tf_internals.types import Model
from stoker.train.execution import hooks
from stoker.train.execution.epoch_steps import EpochSteps, steps_per_execution
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.feeding.sources import DataSource
from stoker.train.execution.keras_step import returns_metrics
from stoker.train.execution.loop import CompiledLoop, Logs
from stoker.train.execution.stretch import CallLength, Stretch


class Tested(Protocol):
    """The model under evaluation, and what surrounds its test steps."""

    model: Model

    def validation_scope(self) -> AbstractContextManager[None]:
        """Start metrics from zero, and give the test whatever else it needs, within a block around the steps."""

    def results(self, logs: Logs) -> Logs:
        """Return the results of the evaluation, given the last step's logs."""


class Evaluation:
    """Data to evaluate on. Call `run` as often as the data can be read."""

    def __init__(
        self,
        tested: Tested,
        loop: CompiledLoop,
        feed: BatchFeed,
        source: DataSource,
        *,
        callbacks: keras.callbacks.CallbackList | None,
        agreed: Callable[[int], int],
    ) -> None:
        """Nothing is traced before the first `run`.

        Args:
            tested: the model, and what surrounds its test steps.
            loop: the loop of the test steps.
            feed: the data, batch by batch.
            source: the data as it was given; Keras' reader is notified when a pass begins and ends.
            callbacks: notified of the test and its batches.
            agreed: takes the number of steps that this worker would run next, and returns how many all workers run.
        """
        self._tested = tested
        self._callbacks = callbacks
        self._agreed = agreed
        wanting = hooks.list_batch_callbacks(callbacks.callbacks, hooks.TEST) if callbacks is not None else []
        per_execution = steps_per_execution(tested.model)
        length = CallLength(per_execution if wanting else None, loop.step_seconds)
        self.stretch = Stretch(
            loop,
            EpochSteps(feed, source.steps_per_epoch, source.adapter, per_execution),
            length,
            per_execution,
        )
        self.steps_ran = 0

    def run(self) -> Logs:
        """Evaluate on all of the data; return the results."""
        callbacks, epoch_steps = self._callbacks, self.stretch.epoch_steps
        self._tested.model.stop_evaluating = False
        self.steps_ran = 0
        epoch_steps.reset()
        if callbacks is not None:
            callbacks.on_test_begin()
        with self._tested.validation_scope():
            epoch_steps.begin_epoch()
            logs: Logs = {}
            while steps := self._agreed(self.stretch.next_length()):
                logs = self._call(steps) or logs
                # As in Keras, a wish to stop takes effect after a batch, not before the first one.
                if self._tested.model.stop_evaluating:
                    break
            epoch_steps.end_epoch()
            logs = self._results(logs)
        if callbacks is not None:
            callbacks.on_test_end(logs)
        return logs

    def _results(self, logs: Logs) -> Logs:
        """Return the results as Keras' `evaluate` does."""
        found, model = self._tested.results(logs), self._tested.model
        if SORTS_RESULTS or not isinstance(model, keras.Model) or returns_metrics(model):
            return to_numbers(found)
        return found

    def _call(self, steps: int) -> Logs:
        if self._callbacks is not None:
            self._callbacks.on_test_batch_begin(self.stretch.epoch_steps.step)
        ran, logs = self.stretch.call(steps)
        self.steps_ran += ran
        if ran and self._callbacks is not None:
            self._callbacks.on_test_batch_end(self.stretch.last_index, logs)
        return logs
