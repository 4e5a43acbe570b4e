"""Epochs of compiled calls, with Keras' callbacks, history, validation and checkpoints around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import keras

from stoker.periodic import steps_until
from stoker.tf_internals.keras_training import is_validated, restored_epoch
from stoker.tf_internals.types import History, Model
from stoker.train.checkpoint.resume import Resume
from stoker.train.execution.loop import Logs
from stoker.train.execution.stretch import Stretch
from stoker.train.loop.effects import CallbackEffects
from stoker.train.loop.tracked import Tracked
from stoker.train.planning.plan import Plan
from stoker.train.program import Program
from stoker.train.workers.leaving import Leaving, Left


@dataclass
class Validation:
    """How to evaluate, and when."""

    evaluate: Callable[[], Logs]
    frequency: int | Sequence[int]

    def due(self, model: Model, epoch: int) -> bool:
        return is_validated(model, epoch, self.frequency)


class Epochs:
    """All epochs of one training run."""

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
        resume: Resume | None = None,
        tracked: Tracked,
        leaving: Leaving,
        interrupted: Leaving,
    ) -> None:
        self.program = program
        self.training = training
        self.callbacks = callbacks
        self.epochs = epochs
        self.initial_epoch = initial_epoch
        self.validation = validation
        self.plan = plan
        self.resume = resume
        self.tracked = tracked
        self.leaving = leaving
        self.interrupted = interrupted
        self.group = program.group
        self.effects = CallbackEffects(program, callbacks)
        self.epoch = 0
        self.step = 0
        self.logs: Logs = {}
        self._done = False
        self._stop_at_once = False

    def train(self) -> History:
        """All epochs; the Keras history, with the plan."""
        model = self.program.model
        logs: Logs | None = None
        self.epoch = restored_epoch(model) or self.initial_epoch
        resuming = self._resuming()
        if self._done:
            return self._history()
        while self.epoch < self.epochs:
            self.program.course.reset()
            with self.effects.shared():
                self.callbacks.on_epoch_begin(self.epoch)
            if resuming:
                self._go_on()
            else:
                self.training.epoch_steps.begin_epoch()
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
            self.program.course.finish()
        with self.effects.shared(last=True):
            self.callbacks.on_train_end(logs)
        self._keep_the_end()
        if self.interrupted.asked:
            raise KeyboardInterrupt
        return self._history()

    def _epoch(self) -> Logs:
        """An epoch, from where it stands to its end."""
        model = self.program.model
        begun = False
        while not self._stop_at_once and (steps := self._ahead(begun)):
            self._call(steps)
            begun = True
        self.training.epoch_steps.end_epoch()
        self.program.course.end_epoch()
        logs = dict(self.program.course.results(self.logs))
        if self.validation is not None and self.validation.due(model, self.epoch):
            logs.update({f"val_{name}": value for name, value in self.validation.evaluate().items()})
        self.tracked.epoch_ended(self.step, self.epoch, logs)
        with self.effects.shared():
            self.callbacks.on_epoch_end(self.epoch, logs)
        return logs

    def _ahead(self, begun: bool) -> int:
        """How many steps the next call runs, on all workers: 0 when the epoch is over for one of them.

        As Keras does, a wish to stop is heard after a batch, also one from before the epoch.
        """
        wish = begun and bool(self.program.model.stop_training)
        asked = 0 if wish else self.training.ahead(self._limit())
        if self.group.alone:
            if self.leaving.asked:
                self._leave()
            if self.interrupted.asked:
                self._save_now()
                raise KeyboardInterrupt
            return asked
        # The chief's clock decides on the length of the call, and whether it is time to save.
        due = self.resume is not None and self.group.chief and self.resume.saver.due(self.step)
        room = asked if self.group.chief or not asked else self.training.epoch_steps.room() or 2**31
        said = self.group.agree(steps=room, stop=wish, leave=self.leaving.asked, due=due)
        if any(said["leave"]):
            self._leave()
        if any(said["due"]) and self.resume is not None:
            self.resume.save(self.step, **self._progress())
        if begun and any(said["stop"]):
            self.program.model.stop_training = True
            return 0
        steps = int(min(said["steps"]))
        if steps == 0 and asked:
            self.training.epoch_steps.ran_out()
        return steps

    def _leave(self) -> None:
        """This worker, or another, was asked to go: all save what they have done, and go."""
        self._save_now()
        self.group.agree(saved=True)
        raise Left

    def _save_now(self) -> None:
        if self.resume is not None:
            self.resume.save(self.step, wait=True, **self._progress())

    def _call(self, steps: int) -> None:
        self.callbacks.on_train_batch_begin(self.training.epoch_steps.step)
        with self.group.running(steps, self.training.length.step_seconds):
            ran, values = self.training.call(steps, self._limit())
        if not ran:
            return
        self.step += ran
        self.logs = values
        self.tracked.called(self.step, ran, values)
        try:
            self.callbacks.on_train_batch_end(self.training.last_index, values)
        except KeyboardInterrupt:
            # A callback that ends the training between two calls, when its time is up, say.
            if self.group.alone:
                self._save_now()
            raise
        self._act_on(self.program.course.after_call(self.step, values))
        if self.resume is not None and self.group.alone:
            self.resume.save_if_due(self.step, **self._progress())

    def _limit(self) -> int | None:
        """How many steps until something is due at a step of its own: an evaluation, a checkpoint."""
        if self.program.model.stop_training:
            return int(getattr(self.program.model, "steps_per_execution", 1))
        saving = None if self.resume is None else self.resume.checkpoint.every_steps
        return steps_until(self.step, self.program.course.stop_points, saving)

    def _act_on(self, wish: str | None) -> None:
        if wish == "stop":
            self.program.model.stop_training = True
        elif wish == "evaluate" and self.validation is not None:
            logs = self.validation.evaluate()
            self.tracked.evaluated(self.step, logs)
            self.program.course.evaluated(self.step, logs)
        elif wish == "rewind":
            goal = self.program.course.goes_back_before(self.step)
            if self.resume is None or not (self.resume.rewind(goal) or self.resume.rewind(self.step)):
                self.program.model.stop_training = True
                return
            assert self.resume.progress is not None
            self.epoch = int(self.resume.progress["epoch"])
            raise _Rewound

    def _history(self) -> History:
        history = self.program.model.history
        longest = self.training.epoch_steps.target or self.training.length.steps
        history.plan = replace(self.plan, steps_per_call=min(self.training.length.steps, longest))
        return history

    def _progress(self) -> dict[str, Any]:
        return {
            "epoch_steps": self.training.epoch_steps,
            "callbacks": self.callbacks,
            "plan": self.plan,
            "epoch": self.epoch,
            "logs": self.logs,
            "stop_training": bool(self.program.model.stop_training),
            "begun": True,
            "program": self.program.state.progress(),
        }

    def _go_on(self) -> None:
        """In an epoch that has begun: everything as it was when the checkpoint was taken."""
        assert self.resume is not None
        rewound = self.step
        progress = self.resume.put_back(self.training.epoch_steps, self.callbacks)
        self.step = int(progress["step"])
        self.logs = dict(progress["logs"])
        self.program.model.stop_training = self._stop_at_once = bool(progress["stop_training"])
        if rewound > self.step:
            salt = self.program.course.rewound(self.step)
            if salt:
                self.training.epoch_steps.feed.reseed(salt)
            # The newest checkpoint must be the one that was gone back to.
            self.resume.save(self.step, wait=True, **self._progress())

    def _resuming(self) -> bool:
        """Begin where the checkpoint was taken; True if that was inside an epoch."""
        progress = self.resume.progress if self.resume is not None else None
        if self.resume is None or progress is None:
            return False
        self.program.state.restore_progress(progress["program"])
        self.epoch = int(progress["epoch"])
        if progress["begun"]:
            return True
        self._done = self.epoch >= self.epochs or bool(progress["stop_training"])
        self.resume.put_back(None if self._done else self.training.epoch_steps, self.callbacks)
        self.step = int(progress["step"])
        if self._done:
            self.callbacks.on_train_end(dict(progress["logs"]))
        return False

    def _keep_the_start(self) -> None:
        """What there is to go back to before the first checkpoint is due."""
        if self.resume is not None and self.program.state.saves_start and self.step == 0:
            self.resume.save(self.step, wait=True, **self._progress())

    def _keep_the_end(self) -> None:
        """The same call again must find that it is done."""
        if self.resume is None:
            return
        progress = {**self._progress(), "begun": False}
        self.resume.save(self.step, wait=True, **progress)


class _Rewound(Exception):
    """The state is that of an earlier checkpoint."""
