"""The engine: epochs of compiled calls, with Keras' callbacks, history and validation around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras
import tensorflow as tf
from keras.src.utils.python_utils import pythonify_logs

from stoker import clock
from stoker.train.loop import Logs, Loop
from stoker.train.pace import Pace
from stoker.train.plan import Plan
from stoker.train.program import Program
from stoker.train.tempo import Tempo


class Stretch:
    """Steps of one kind over one feed: training, or a validation."""

    def __init__(self, loop: Loop, pace: Pace, tempo: Tempo, reads: bool = True) -> None:
        self.loop = loop
        self.pace = pace
        self.tempo = tempo
        self.reads = reads

    def call(self, limit: int | None = None) -> tuple[int, Logs]:
        """One compiled call: how many steps it ran, and the last one's logs as numbers."""
        room = self.pace.room()
        asked = self.tempo.ask(room if limit is None else min(room or limit, limit))
        begin = clock.now_ns()
        try:
            logs = self.loop.run(self.pace.taken, asked)
            ran = self.loop.ran
        except tf.errors.OutOfRangeError:
            # A dataset that promised more batches than it has.
            ran, logs = 0, {}
            self.pace.ran_out()
        else:
            self.pace.advance(asked, ran)
        values = pythonify_logs(logs) if ran else {}
        self.tempo.took(ran, (clock.now_ns() - begin) / 1e9)
        return ran, values


@dataclass
class Validation:
    """When to evaluate, and on what."""

    stretch: Stretch
    frequency: int | Sequence[int]

    def due(self, model: Any, epoch: int) -> bool:
        return bool(model._should_eval(epoch, self.frequency))


class Engine:
    """Trains a program: epochs, callbacks, validation."""

    def __init__(
        self,
        program: Program,
        training: Stretch,
        callbacks: keras.callbacks.CallbackList,
        *,
        epochs: int,
        initial_epoch: int = 0,
        validation: Validation | None = None,
        plan: Plan,
    ) -> None:
        self.program = program
        self.training = training
        self.callbacks = callbacks
        self.epochs = epochs
        self.initial_epoch = initial_epoch
        self.validation = validation
        self.plan = plan
        self.step = 0
        self.logs: Logs = {}

    def train(self) -> Any:
        """All epochs; the Keras history, with the plan."""
        model = self.program.model
        logs: Logs | None = None
        first = model._initial_epoch or self.initial_epoch
        for epoch in range(first, self.epochs):
            self.program.reset()
            self.callbacks.on_epoch_begin(epoch)
            self.training.pace.begin_epoch()
            logs = self._epoch(epoch)
            if model.stop_training:
                break
        if self.epochs > 0:
            self.program.finish()
        self.callbacks.on_train_end(logs)
        history = model.history
        history.plan = replace(self.plan, steps_per_call=self.training.tempo.steps)
        return history

    def _epoch(self, epoch: int) -> Logs:
        """An epoch from where its pace stands to its end."""
        model = self.program.model
        while not model.stop_training and self.training.pace.room() != 0:
            self._call()
        self.training.pace.end_epoch()
        self.program.end_epoch()
        logs = dict(self.program.results(self.logs))
        if self.validation is not None and self.validation.due(model, epoch):
            logs.update({f"val_{name}": value for name, value in self._validate().items()})
        self.callbacks.on_epoch_end(epoch, logs)
        return logs

    def _call(self) -> None:
        pace = self.training.pace
        self.callbacks.on_train_batch_begin(pace.step)
        points = self.program.stop_points
        ran, values = self.training.call(points - self.step % points if points else None)
        if not ran:
            return
        self.step += ran
        self.logs = values
        self.callbacks.on_train_batch_end(pace.step - 1, values)
        if self.program.after_call(self.step, values) == "stop":
            self.program.model.stop_training = True

    def _validate(self) -> Logs:
        assert self.validation is not None
        stretch = self.validation.stretch
        model = self.program.model
        model.stop_evaluating = False
        stretch.pace.reset()
        self.callbacks.on_test_begin()
        self.program.reset()
        stretch.pace.begin_epoch()
        logs: Logs = {}
        while not model.stop_evaluating and stretch.pace.room() != 0:
            self.callbacks.on_test_batch_begin(stretch.pace.step)
            ran, values = stretch.call()
            if ran:
                logs = values
                self.callbacks.on_test_batch_end(stretch.pace.step - 1, values)
        stretch.pace.end_epoch()
        logs = self.program.results(logs)
        self.callbacks.on_test_end(logs)
        return logs
