"""One training run: from data and a program to epochs that train, including the decision on the plan."""

from __future__ import annotations

import hashlib
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import tensorflow as tf

from stoker.doctor.attach import announced
from stoker.doctor.attach.sites import Sites, shown_path
from stoker.goodput import accounts, journal
from stoker.tf_internals.eager import global_seed
from stoker.tf_internals.types import Callbacks, Data, History, Model
from stoker.train.checkpoint.options import Checkpoint
from stoker.train.checkpoint.resume import Resume
from stoker.train.execution import hooks
from stoker.train.execution.epoch_steps import EpochSteps, steps_per_execution
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.feeding.sources import DataSource
from stoker.train.execution.kept import traces_of
from stoker.train.execution.loop import CompiledLoop
from stoker.train.execution.parts import Cut
from stoker.train.execution.stretch import CallLength, Stretch
from stoker.train.loop.effects import CallbackEffects
from stoker.train.loop.epochs import Epochs
from stoker.train.loop.progress import ProgressBar, show_plan, show_resume
from stoker.train.loop.tracked import Tracked
from stoker.train.loop.validation import Validation
from stoker.train.planning import decide
from stoker.train.planning.largest_batch import make_too_large_error
from stoker.train.planning.memory import find_batch_rows
from stoker.train.planning.parts import choose_parts
from stoker.train.planning.plan import Plan, parse
from stoker.train.program import TrainingProgram
from stoker.train.request import FitRequest
from stoker.train.workers.leaving import Leaving, is_in_a_job, list_warnings
from stoker.train.workers.shares import Share


@dataclass
class TrainingRun:
    """A training run: what to train, on which data, and for how long."""

    program: TrainingProgram
    request: FitRequest
    data: DataSource
    # The fields that the user set, and those that preparing the data has decided.
    plan: Plan
    # The rows that this worker reads.
    share: Share
    # The data as the user gave it, by name, for the store.
    given: Mapping[str, Data]
    _leaving: Leaving = field(default_factory=lambda: Leaving(listen=False))
    _interrupted: Leaving = field(default_factory=lambda: Leaving(listen=False))
    _parts: int = 1

    def __post_init__(self) -> None:
        self.group = self.program.group
        held_out = self.request.validation_data is not None
        self.validation = Validation(self.program, self.request) if held_out else None

    def _count_own_rows(self) -> int:
        """Return the rows of a batch that this worker trains on; the doctor adds up those of all workers."""
        rows = self.data.batch_size or 0
        return rows if self.share.apart else rows // self.group.count

    def train(self) -> History:
        """Decide the plan, train, and return the history."""
        loop = announced.region(announced.LOOP, batch_size=self._count_own_rows())
        with loop, journal.at_line(_find_line()):
            checkpoint = self.request.checkpoint
            with journal.phase(accounts.RESTORING):
                resume = (
                    None if checkpoint is None else Resume(Checkpoint.of(checkpoint), self.group, self.share)
                )
            try:
                with (
                    Leaving(*self._list_leaving_signals(), listen=is_in_a_job()) as self._leaving,
                    Leaving(
                        signal.SIGINT, listen=not is_in_a_job() and self._can_save_on_ctrl_c()
                    ) as self._interrupted,
                    Tracked(
                        self.program,
                        self._parameters(),
                        self.given,
                        self.request.callbacks,
                        None if checkpoint is None else Checkpoint.of(checkpoint).local_directory,
                    ) as tracked,
                ):
                    history = self._train(resume, tracked)
                history.run = tracked.run.id
                return history
            finally:
                traces_of(self.program.model).release()
                if resume is not None:
                    with journal.phase(accounts.SAVING):
                        resume.close(sys.exc_info()[1])

    def _list_leaving_signals(self) -> list[signal.Signals]:
        """Return the signals that ask a worker to save and exit: also Ctrl-C, if there is somewhere to save."""
        return [*list_warnings(), *([signal.SIGINT] if self._can_save_on_ctrl_c() else [])]

    def _can_save_on_ctrl_c(self) -> bool:
        """Return whether the run may save on Ctrl-C: not if the program handles Ctrl-C itself."""
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        return usual and self.request.checkpoint is not None

    def _parameters(self) -> dict[str, int | None]:
        """Return the call's parameters as the store keeps them."""
        return {
            "epochs": self.request.epochs,
            "batch_size": self.data.batch_size,
            "steps_per_epoch": self.data.steps_per_epoch or self.data.adapter.num_batches,
        }

    def _train(self, resume: Resume | None, tracked: Tracked) -> History:
        plan = self.plan if resume is None else resume.pin_plan(self.plan)
        kind = decide.choose_fusing(self.program.loops, decide.choose_feed(self.data, plan))
        plan = self._agree_on(lambda: kind)
        feed = self.data.feed(plan.feed or "resident", self._seed())
        try:
            return self._train_on(feed, plan, resume, tracked)
        except tf.errors.ResourceExhaustedError as error:
            raise make_too_large_error(self.program.loops, self.data, self._parts) from error
        finally:
            feed.close()
            if self.validation is not None:
                self.validation.close()

    def _train_on(self, feed: BatchFeed, plan: Plan, resume: Resume | None, tracked: Tracked) -> History:
        model, request = self.program.model, self.request
        epoch_steps = EpochSteps(
            feed, self.data.steps_per_epoch, self.data.adapter, steps_per_execution(model)
        )
        epoch_steps.reset()
        plan = self._choose_parts(feed, plan)
        self._parts = plan.parts or 1
        listed = hooks.list_training_callbacks(
            model, request.callbacks, request.verbose, request.epochs, epoch_steps.target, ProgressBar()
        )
        model.stop_training = False
        if resume is not None:
            self._begin(resume, feed, plan)
        elif not self.group.alone:
            # The variables must exist, because they show what the callbacks change.
            with journal.phase(accounts.COMPILING):
                self._training_loop(feed, plan).build()
        with CallbackEffects(self.program, listed).share():
            listed.on_train_begin()
        wanted = plan
        with journal.phase(accounts.COMPILING):
            plan = self._agree_on(lambda: self._decide(wanted, feed, epoch_steps, listed))
        if request.verbose:
            show_plan(plan)
        if request.verbose and resume is not None and resume.progress is not None:
            show_resume(resume.progress, resume.checkpoint.name, request.epochs)
        loop = self._training_loop(feed, plan)
        if self.validation is not None:
            with journal.phase(accounts.COMPILING):
                self.validation.prepare(plan, listed)
        epochs = Epochs(
            program=self.program,
            request=request,
            training=Stretch(loop, epoch_steps, _call_length(plan, loop), steps_per_execution(model)),
            callbacks=listed,
            validation=self.validation,
            plan=plan,
            resume=resume,
            tracked=tracked,
            leaving=self._leaving,
            interrupted=self._interrupted,
        )
        tuned = {name: rate for name, rate in plan.figures.items() if name.startswith("input_")}
        parts = {} if plan.parts is None else {"parts": plan.parts}
        tracked.run.params(feed=plan.feed, jit=plan.jit, fused=plan.fused, **parts, **tuned)
        return epochs.train()

    def _choose_parts(self, feed: BatchFeed, plan: Plan) -> Plan:
        def make_loop(feed: BatchFeed, cut: Cut | None) -> CompiledLoop:
            jit = decide.choose_jit_to_try(self.program.loops, feed, plan, cut=cut is not None)
            return self.program.loops.loop("train_step", feed, jit, fused=bool(plan.fused), cut=cut)

        asked = self.request.memory
        rows = None if asked is None else self._count_replica_rows()
        return choose_parts(self.program.loops, self.data, feed, plan, asked, rows=rows, make_loop=make_loop)

    def _count_replica_rows(self) -> int | None:
        """Return the rows of a batch on one replica; None if not known."""
        rows = find_batch_rows(self.data)
        replicas = self.group.replicas // (self.group.count if self.share.apart else 1)
        return None if rows is None else -(-rows // replicas)

    def _training_loop(self, feed: BatchFeed, plan: Plan) -> CompiledLoop:
        cut = Cut(plan.parts or 1, self._count_replica_rows()) if decide.is_cut(plan) else None
        return self.program.loops.loop(
            "train_step", feed, plan.jit or "none", fused=bool(plan.fused), cut=cut
        )

    def _agree_on(self, decide: Callable[[], Plan]) -> Plan:
        """Return the chief's plan: its measurements, and the wishes of its callbacks, hold for all workers."""
        return decide() if self.group.alone else parse(self.group.ask_chief(lambda: decide().to_json()))

    def _begin(self, resume: Resume, feed: BatchFeed, plan: Plan) -> None:
        with journal.phase(accounts.COMPILING):
            graphs = [self._training_loop(feed, plan).build().graph]
            if self.validation is not None:
                graphs += self.validation.graphs(plan)
        with journal.phase(accounts.RESTORING):
            resume.begin(self.program.state, graphs, str(self.group.ask_chief(self.data.fingerprint)))

    def _decide(self, plan: Plan, feed: BatchFeed, epoch_steps: EpochSteps, listed: Callbacks) -> Plan:
        plan = _adapt_to_hooks(plan, self.program.model, listed)
        steps = epoch_steps.target and epoch_steps.target * (self.request.epochs - self.request.initial_epoch)

        def loops(jit: str) -> CompiledLoop:
            return self.program.loops.trial_loop(feed, jit, fused=bool(plan.fused))

        return decide.choose_jit(self.program.loops, feed, loops, plan, steps)

    def _seed(self) -> int:
        """Return a seed made from TensorFlow's global seed, if there is one, and the number of updates so far.

        No two calls in a row use the same order, and the same program uses the same orders every time.
        """
        optimizer = getattr(self.program.model, "optimizer", None)
        done = 0 if optimizer is None else int(optimizer.iterations.numpy())
        text = f"{global_seed()} {done}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")


def _find_line() -> str:
    """Return the user's line that trains, for the ledger of the job if there is one."""
    if not journal.is_kept():
        return ""
    site, _ = Sites().caller()
    return "" if site is None else f"{shown_path(site[0])}:{site[1]}"


def _call_length(plan: Plan, loop: CompiledLoop) -> CallLength:
    measured = plan.figures.get(f"{plan.jit}_us")
    return CallLength(plan.steps_per_call, measured / 1e6 if measured else loop.step_seconds)


def _adapt_to_hooks(plan: Plan, model: Model, listed: Callbacks) -> Plan:
    """Return the plan with one step per call (or Keras' `steps_per_execution`) if callbacks act at every batch."""
    wanting = hooks.list_batch_callbacks(listed.callbacks, hooks.TRAIN)
    if not wanting:
        return plan
    count = steps_per_execution(model)
    reason = f"{', '.join(wanting)} acts at every batch"
    return replace(plan, steps_per_call=count, reasons=(*plan.reasons, reason))
