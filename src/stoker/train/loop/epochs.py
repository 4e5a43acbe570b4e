"""The engine: epochs of compiled calls, with Keras' callbacks, history and validation around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras
import tensorflow as tf
from keras.src.utils.python_utils import pythonify_logs

from stoker import clock
from stoker.execution.call_length import Tempo
from stoker.execution.loop import Logs, Loop
from stoker.train.checkpoint.resume import Keeper
from stoker.train.loop.epoch_steps import Pace
from stoker.train.loop.program import Program
from stoker.train.planning.plan import Plan


class Stretch:
    """Steps of one kind over one feed: training, or a validation."""

    def __init__(self, loop: Loop, pace: Pace, tempo: Tempo) -> None:
        self.loop = loop
        self.pace = pace
        self.tempo = tempo

    def call(self, limit: int | None = None) -> tuple[int, Logs]:
        """One compiled call: how many steps it ran, and the last one's logs as numbers."""
        room = self.pace.room()
        asked = self.tempo.ask(room if limit is None else min(room or limit, limit))
        # Not once for all: the same loop may have run over other data since, for a callback that evaluates.
        self.loop.feed = self.pace.feed
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
    """Trains a program: epochs, callbacks, validation, checkpoints."""

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
        keeper: Keeper | None = None,
    ) -> None:
        self.program = program
        self.training = training
        self.callbacks = callbacks
        self.epochs = epochs
        self.initial_epoch = initial_epoch
        self.validation = validation
        self.plan = plan
        self.keeper = keeper
        self.epoch = 0
        self.step = 0
        self.logs: Logs = {}
        self._done = False

    def train(self) -> Any:
        """All epochs; the Keras history, with the plan."""
        model = self.program.model
        logs: Logs | None = None
        self.epoch = model._initial_epoch or self.initial_epoch
        resuming = self._resuming()
        if self._done:
            return self._history()
        while self.epoch < self.epochs:
            self.program.reset()
            self.callbacks.on_epoch_begin(self.epoch)
            if resuming:
                self._go_on()
            else:
                self.training.pace.begin_epoch()
                self._keep_the_start()
            try:
                logs = self._epoch()
            except _Rewound:
                resuming = True
                continue
            resuming = False
            self.epoch += 1
            if model.stop_training:
                break
        if self.epochs > 0:
            self.program.finish()
        self.callbacks.on_train_end(logs)
        self._keep_the_end()
        return self._history()

    def _epoch(self) -> Logs:
        """An epoch from where its pace stands to its end."""
        model = self.program.model
        while not model.stop_training and self.training.pace.room() != 0:
            self._call()
        self.training.pace.end_epoch()
        self.program.end_epoch()
        logs = dict(self.program.results(self.logs))
        if self.validation is not None and self.validation.due(model, self.epoch):
            logs.update({f"val_{name}": value for name, value in self._validate().items()})
        self.callbacks.on_epoch_end(self.epoch, logs)
        return logs

    def _call(self) -> None:
        pace = self.training.pace
        self.callbacks.on_train_batch_begin(pace.step)
        ran, values = self.training.call(self._limit())
        if not ran:
            return
        self.step += ran
        self.logs = values
        self.callbacks.on_train_batch_end(pace.step - 1, values)
        self._act_on(self.program.after_call(self.step, values))
        if self.keeper is not None:
            self.keeper.save_if_due(self.step, **self._progress())

    def _limit(self) -> int | None:
        """How many steps until something is due at a step of its own: an evaluation, a checkpoint."""
        marks = [self.program.stop_points, self.keeper.every_steps if self.keeper is not None else None]
        return min((mark - self.step % mark for mark in marks if mark), default=None)

    def _act_on(self, wish: str | None) -> None:
        if wish == "stop":
            self.program.model.stop_training = True
        elif wish == "evaluate" and self.validation is not None:
            self.program.evaluated(self.step, self._validate())
        elif wish == "rewind":
            goal = self.program.goes_back_before(self.step)
            if self.keeper is None or not (self.keeper.rewind(goal) or self.keeper.rewind(self.step)):
                self.program.model.stop_training = True
                return
            assert self.keeper.progress is not None
            self.epoch = int(self.keeper.progress["epoch"])
            raise _Rewound

    def _validate(self) -> Logs:
        assert self.validation is not None
        stretch = self.validation.stretch
        model = self.program.model
        model.stop_evaluating = False
        stretch.pace.reset()
        self.callbacks.on_test_begin()
        with self.program.validating():
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

    def _history(self) -> Any:
        history = self.program.model.history
        longest = self.training.pace.target or self.training.tempo.steps
        history.plan = replace(self.plan, steps_per_call=min(self.training.tempo.steps, longest))
        return history

    def _progress(self) -> dict[str, Any]:
        return {
            "pace": self.training.pace,
            "callbacks": self.callbacks,
            "plan": self.plan,
            "epoch": self.epoch,
            "logs": self.logs,
            "stop_training": bool(self.program.model.stop_training),
            "begun": True,
            "program": self.program.progress(),
        }

    def _go_on(self) -> None:
        """In an epoch that has begun: everything as it was when the checkpoint was taken."""
        assert self.keeper is not None
        rewound = self.step
        progress = self.keeper.put_back(self.training.pace, self.callbacks)
        self.step = int(progress["step"])
        self.logs = dict(progress["logs"])
        self.program.model.stop_training = bool(progress["stop_training"])
        if rewound > self.step:
            salt = self.program.rewound(self.step)
            if salt:
                self.training.pace.feed.reseed(salt)
            # The newest checkpoint must be the one that was gone back to.
            self.keeper.save(self.step, wait=True, **self._progress())

    def _resuming(self) -> bool:
        """Begin where the checkpoint was taken; True if that was inside an epoch."""
        progress = self.keeper.progress if self.keeper is not None else None
        if self.keeper is None or progress is None:
            return False
        self.program.go_on(progress["program"])
        self.epoch = int(progress["epoch"])
        if progress["begun"]:
            return True
        self._done = self.epoch >= self.epochs or bool(progress["stop_training"])
        self.keeper.put_back(None if self._done else self.training.pace, self.callbacks)
        self.step = int(progress["step"])
        if self._done:
            self.callbacks.on_train_end(dict(progress["logs"]))
        return False

    def _keep_the_start(self) -> None:
        """What there is to go back to before the first checkpoint is due."""
        if self.keeper is not None and self.program.saves_start and self.step == 0:
            self.keeper.save(self.step, wait=True, **self._progress())

    def _keep_the_end(self) -> None:
        """The same call again must find that it is done."""
        if self.keeper is None:
            return
        progress = {**self._progress(), "begun": False}
        self.keeper.save(self.step, wait=True, **progress)


class _Rewound(Exception):
    """The state is that of an earlier checkpoint."""
