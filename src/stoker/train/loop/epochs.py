"""Epochs of compiled calls, with Keras' callbacks, history, validation and checkpoints around them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import keras

from stoker import clock
from stoker.goodput import accounts, journal
from stoker.periodic import steps_until
from stoker.tf_internals.keras_training import restored_epoch
from stoker.tf_internals.types import History
from stoker.train.checkpoint.resume import Resume
from stoker.train.execution.epoch_steps import steps_per_execution
from stoker.train.execution.loop import Logs
from stoker.train.execution.stretch import Stretch
from stoker.train.loop.effects import CallbackEffects
from stoker.train.loop.progress import show
from stoker.train.loop.tracked import Tracked
from stoker.train.loop.validation import Validation
from stoker.train.planning.plan import Plan
from stoker.train.program import TrainingProgram
from stoker.train.request import FitRequest
from stoker.train.workers.leaving import JobLeft, Leaving


@dataclass
class Epochs:
    """All epochs of one training run.

    Attributes:
        program: the program that is trained.
        request: the call of `fit`.
        training: the loop of the program's steps, and its place in the data.
        callbacks: Keras' list of callbacks.
        validation: the validation, if there is one.
        plan: how the run executes.
        resume: the run's checkpoints, if it has any.
        tracked: the run in the store.
        leaving, interrupted: whether SIGTERM or Ctrl-C asked the process to stop.
    """

    program: TrainingProgram
    request: FitRequest
    training: Stretch
    callbacks: keras.callbacks.CallbackList
    validation: Validation | None
    plan: Plan
    resume: Resume | None
    tracked: Tracked
    leaving: Leaving
    interrupted: Leaving
    epoch: int = 0
    step: int = 0
    logs: Logs = field(default_factory=dict)
    _done: bool = False
    _stop_at_once: bool = False

    def __post_init__(self) -> None:
        self.group = self.program.group
        self.effects = CallbackEffects(self.program, self.callbacks)

    def train(self) -> History:
        """Run all epochs; return Keras' history, with the plan."""
        self.epoch = restored_epoch(self.program.model) or self.request.initial_epoch
        with journal.phase(accounts.RESTORING):
            resuming = self._begin()
        if not resuming:
            self._note_resumed()
        if self._done:
            return self._history()
        with journal.phase(accounts.TRAINING):
            return self._train_epochs(resuming)

    def _train_epochs(self, resuming: bool) -> History:
        model = self.program.model
        logs: Logs | None = None
        while self.epoch < self.request.epochs:
            self.program.course.reset()
            with self.effects.share():
                self.callbacks.on_epoch_begin(self.epoch)
            if resuming:
                with journal.phase(accounts.RESTORING):
                    self._restore()
            else:
                with journal.waiting(accounts.DATA):
                    self.training.epoch_steps.begin_epoch()
                self._save_start()
            try:
                logs = self._epoch()
            except _Rewound:
                resuming = True
                continue
            resuming = False
            self.epoch += 1
            if model.stop_training:
                break
        if self.request.epochs > 0:
            self.program.course.finish()
        with self.effects.share(last=True):
            self.callbacks.on_train_end(logs)
        self._save_end()
        if self.interrupted.asked:
            raise self._describe_interrupt()
        return self._history()

    def _epoch(self) -> Logs:
        """Run an epoch from the current step to its end."""
        begun = False
        journal.go_on_with_steps()
        while not self._stop_at_once and (steps := self._plan_call(begun)):
            self._call(steps)
            begun = True
        journal.leave_steps()
        self.training.epoch_steps.end_epoch()
        self.program.course.end_epoch()
        logs = dict(self.program.course.results(self.logs))
        if self.validation is not None and self.validation.is_due(self.epoch):
            logs.update({f"val_{name}": value for name, value in self.validation.run().items()})
        self.tracked.log_epoch(self.step, self.epoch, logs)
        with self.effects.share():
            self.callbacks.on_epoch_end(self.epoch, logs)
        return logs

    def _plan_call(self, begun: bool) -> int:
        """Return how many steps the next call runs, on all workers: 0 when the epoch is over for one of them.

        As in Keras, a request to stop takes effect after a batch, even if it comes from before the epoch.
        """
        wish = begun and bool(self.program.model.stop_training)
        asked = 0 if wish else self.training.next_length(self._limit())
        if self.group.alone:
            if self.leaving.asked:
                self._leave()
            if self.interrupted.asked:
                self._save_now()
                raise self._describe_interrupt()
            return asked
        # The chief's clock decides how long the call is, and whether it is time to save.
        due = self.resume is not None and self.group.chief and self.resume.is_due(self.step)
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
            self.training.epoch_steps.note_end_of_data()
        return steps

    def _describe_interrupt(self) -> KeyboardInterrupt:
        """Return the error for a run that was interrupted and saved.

        Python shows it as the last line of the program.
        """
        assert self.resume is not None
        where = self.resume.checkpoint.name
        return KeyboardInterrupt(
            f"saved at step {self.step:,} in {where}; run the same command again to continue"
        )

    def _leave(self) -> None:
        """Save on all workers and exit, because one of them was asked to stop."""
        self._save_now()
        self.group.agree(saved=True)
        if self.resume is not None and self.request.verbose:
            where = self.resume.checkpoint.name
            show(f"saved at step {self.step:,} in {where}", self.request.verbose)
        raise JobLeft

    def _save_now(self) -> None:
        if self.resume is not None:
            self.resume.save(self.step, wait=True, **self._progress())

    def _call(self, steps: int) -> None:
        self.callbacks.on_train_batch_begin(self.training.epoch_steps.step)
        traces, begin = self._count_traces(), clock.real_ns()
        with self.group.watch_call(steps, self.training.length.step_seconds):
            ran, values = self.training.call(steps, self._limit())
        if not ran:
            return
        seconds, cold = (clock.real_ns() - begin) / 1e9, self._count_traces() > traces
        journal.note_call(self.step, self.step + ran, seconds, self.training.loop.waited_s, cold=cold)
        self.step += ran
        self.logs = values
        self.tracked.log_call(self.step, ran, values)
        if self.program.watch is not None and self.group.chief:
            self.program.watch(self.step, values)
        try:
            self.callbacks.on_train_batch_end(self.training.last_index, values)
        except KeyboardInterrupt:
            # A callback may end the training between two calls, for example when its time is up.
            if self.group.alone:
                self._save_now()
            raise
        self._act_on(self.program.course.after_call(self.step, values))
        # The state to save is assembled only when it is time.
        if self.resume is not None and self.group.alone and self.resume.is_due(self.step):
            self.resume.save(self.step, **self._progress())

    def _count_traces(self) -> int:
        """Return how many times the loop was traced; only a job's ledger asks."""
        return self.training.loop.trace_count if journal.is_kept() else 0

    def _limit(self) -> int | None:
        """Return how many steps remain until something is due within an epoch: an evaluation or a checkpoint."""
        if self.program.model.stop_training:
            return steps_per_execution(self.program.model)
        saving = None if self.resume is None else self.resume.checkpoint.every_steps
        return steps_until(self.step, self.program.course.stop_points, saving)

    def _act_on(self, wish: str | None) -> None:
        if wish == "stop":
            self.program.model.stop_training = True
        elif wish == "evaluate" and self.validation is not None:
            logs = self.validation.run()
            self.tracked.note_evaluation(self.step, logs)
            self.program.course.note_evaluation(self.step, logs)
        elif wish == "rewind":
            goal = self.program.course.choose_rewind_limit(self.step)
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

    def _restore(self) -> None:
        """Restore a checkpoint that was taken inside an epoch."""
        assert self.resume is not None
        rewound = self.step
        progress = self.resume.put_back(self.training.epoch_steps, self.callbacks)
        self.step = int(progress["step"])
        self.logs = dict(progress["logs"])
        self.program.model.stop_training = self._stop_at_once = bool(progress["stop_training"])
        self._note_resumed()
        if rewound > self.step:
            salt = self.program.course.go_on_from(self.step)
            if salt:
                self.training.epoch_steps.feed.reseed(salt)
            # The newest checkpoint must be the one to which the run rewound.
            self.resume.save(self.step, wait=True, **self._progress())

    def _note_resumed(self) -> None:
        journal.note_resumed(None if self.resume is None else self.resume.checkpoint.name, self.step)

    def _begin(self) -> bool:
        """Begin where the checkpoint was taken; return True if that was inside an epoch."""
        progress = self.resume.progress if self.resume is not None else None
        if self.resume is None or progress is None:
            return False
        self.program.state.restore_progress(progress["program"])
        self.epoch = int(progress["epoch"])
        if progress["begun"]:
            return True
        self._done = self.epoch >= self.request.epochs or bool(progress["stop_training"])
        self.resume.put_back(None if self._done else self.training.epoch_steps, self.callbacks)
        self.step = int(progress["step"])
        if self._done:
            self.callbacks.on_train_end(dict(progress["logs"]))
        return False

    def _save_start(self) -> None:
        """Save the initial state, so that a run can rewind before its first checkpoint is due."""
        if self.resume is not None and self.program.state.saves_start and self.step == 0:
            self.resume.save(self.step, wait=True, **self._progress())

    def _save_end(self) -> None:
        """Save the state at the end, so that the same call finds the run complete."""
        if self.resume is None:
            return
        progress = {**self._progress(), "begun": False}
        self.resume.save(self.step, wait=True, **progress)


class _Rewound(Exception):
    """Raised when the state has been set back to an earlier checkpoint."""
