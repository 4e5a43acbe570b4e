"""One training run: from data and a program to epochs that train, with the plan decided."""

from __future__ import annotations

import hashlib
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import tensorflow as tf

from stoker.doctor.attach import announced
from stoker.tf_internals.eager import global_seed
from stoker.tf_internals.types import Callbacks, Data, History, Model
from stoker.train.checkpoint.options import Checkpoint
from stoker.train.checkpoint.resume import Resume
from stoker.train.execution import hooks
from stoker.train.execution.call_length import CallLength
from stoker.train.execution.epoch_steps import EpochSteps
from stoker.train.execution.feed import Feed
from stoker.train.execution.feeding import sources
from stoker.train.execution.feeding.resident import Resident
from stoker.train.execution.feeding.sources import Source
from stoker.train.execution.kept import kept
from stoker.train.execution.loop import Loop
from stoker.train.execution.own_methods import is_own
from stoker.train.execution.stretch import Stretch
from stoker.train.inference.evaluation import Evaluation
from stoker.train.loop.effects import CallbackEffects
from stoker.train.loop.epochs import Epochs, Validation
from stoker.train.loop.own_evaluation import OwnEvaluation
from stoker.train.loop.progress import Progress, show_plan, show_resume
from stoker.train.loop.tracked import Tracked
from stoker.train.planning import decide
from stoker.train.planning.largest_batch import too_large
from stoker.train.planning.plan import Plan, parse
from stoker.train.program import Program
from stoker.train.request import FitRequest
from stoker.train.workers.leaving import Leaving, in_a_job
from stoker.train.workers.shares import Share


@dataclass
class TrainingRun:
    """What to train, on what, how long."""

    program: Program
    request: FitRequest
    data: Source
    # What is asked for, and what preparing the data has decided already.
    plan: Plan
    # Which rows this worker reads.
    share: Share
    # The data as it was given, by name, for the store.
    given: Mapping[str, Data]
    _held_out_feed: Feed | None = None
    _leaving: Leaving = field(default_factory=lambda: Leaving(listen=False))
    _interrupted: Leaving = field(default_factory=lambda: Leaving(listen=False))

    def __post_init__(self) -> None:
        self.group = self.program.group
        # The same, as arguments of `evaluate` and as something to read.
        self.validation = self.request.evaluate_arguments()
        self.held_out = None if self.validation is None else _held_out(**self.validation)

    def _own_rows(self) -> int:
        """Of a batch, the rows that are this worker's: the books of a job add up those of all."""
        rows = self.data.batch_size or 0
        return rows if self.share.apart else rows // self.group.count

    def train(self) -> History:
        """Decide, train, and give the history."""
        with announced.region(announced.LOOP, batch_size=self._own_rows()):
            checkpoint = self.request.checkpoint
            resume = None if checkpoint is None else Resume(Checkpoint.of(checkpoint), self.group, self.share)
            try:
                with (
                    Leaving(listen=in_a_job()) as self._leaving,
                    Leaving(signal.SIGINT, listen=self._saves_on_ctrl_c()) as self._interrupted,
                    Tracked(self.program, self._parameters(), self.given, self.request.callbacks) as tracked,
                ):
                    history = self._train(resume, tracked)
                history.run = tracked.run.id
                return history
            finally:
                kept(self.program.model).release()
                if resume is not None:
                    resume.close(sys.exc_info()[1])

    def _saves_on_ctrl_c(self) -> bool:
        """Unless the program hears Ctrl-C in a way of its own, or a job's launcher does."""
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        return usual and self.request.checkpoint is not None and self.group.alone and not in_a_job()

    def _parameters(self) -> dict[str, int | None]:
        """What the store keeps of how it was called."""
        return {
            "epochs": self.request.epochs,
            "batch_size": self.data.batch_size,
            "steps_per_epoch": self.data.steps_per_epoch or self.data.adapter.num_batches,
        }

    def _train(self, resume: Resume | None, tracked: Tracked) -> History:
        plan = self.plan if resume is None else resume.pinned(self.plan)
        kind = decide.fused(self.program.loops, decide.feed_kind(self.data, plan))
        plan = self._told(lambda: kind)
        feed = self.data.feed(plan.feed or "resident", self._seed())
        try:
            return self._train_on(feed, plan, resume, tracked)
        except tf.errors.ResourceExhaustedError as error:
            raise too_large(self.program.loops, self.data) from error
        finally:
            for used in (feed, self._held_out_feed):
                if used is not None:
                    used.close()

    def _train_on(self, feed: Feed, plan: Plan, resume: Resume | None, tracked: Tracked) -> History:
        model, request = self.program.model, self.request
        epoch_steps = EpochSteps(
            feed, self.data.steps_per_epoch, self.data.adapter, _steps_per_execution(model)
        )
        epoch_steps.reset()
        listed = hooks.callback_list(
            model, request.callbacks, request.verbose, request.epochs, epoch_steps.target, Progress()
        )
        model.stop_training = False
        if resume is not None:
            self._begin(resume, feed, plan)
        elif not self.group.alone:
            # What callbacks change is looked for in the variables: they must be there.
            self._training_loop(feed, plan).build()
        with CallbackEffects(self.program, listed).shared():
            listed.on_train_begin()
        wanted = plan
        plan = self._told(lambda: self._decided(wanted, feed, epoch_steps, listed))
        if request.verbose:
            show_plan(plan)
        if request.verbose and resume is not None and resume.progress is not None:
            show_resume(resume.progress, resume.checkpoint.directory, request.epochs)
        loop = self._training_loop(feed, plan)
        epochs = Epochs(
            self.program,
            Stretch(loop, epoch_steps, _call_length(plan, loop), _steps_per_execution(model)),
            listed,
            epochs=request.epochs,
            initial_epoch=request.initial_epoch,
            validation=self._validation(listed, plan),
            plan=plan,
            resume=resume,
            tracked=tracked,
            leaving=self._leaving,
            interrupted=self._interrupted,
        )
        tuned = {name: rate for name, rate in plan.figures.items() if name.startswith("input_")}
        tracked.run.params(feed=plan.feed, jit=plan.jit, fused=plan.fused, **tuned)
        return epochs.train()

    def _training_loop(self, feed: Feed, plan: Plan) -> Loop:
        return self.program.loops.loop("train_step", feed, plan.jit or "none", fused=bool(plan.fused))

    def _told(self, decide: Callable[[], Plan]) -> Plan:
        """The chief's plan: what it measured, and what its callbacks ask for, holds for all workers."""
        return decide() if self.group.alone else parse(self.group.told(lambda: decide().to_json()))

    def _begin(self, resume: Resume, feed: Feed, plan: Plan) -> None:
        graphs = [self._training_loop(feed, plan).build().graph]
        # What a model's own `evaluate` makes of the data is seen when it is called.
        if self.held_out is not None and not self._evaluates_itself():
            graphs.append(self._held_out_loop(plan)[1].build().graph)
        resume.begin(self.program.state, graphs, str(self.group.told(self.data.fingerprint)))

    def _decided(self, plan: Plan, feed: Feed, epoch_steps: EpochSteps, listed: Callbacks) -> Plan:
        plan = _with_hooks(plan, self.program.model, listed)
        steps = epoch_steps.target and epoch_steps.target * (self.request.epochs - self.request.initial_epoch)

        def loops(jit: str) -> Loop:
            return self.program.loops.trial_loop(feed, jit, fused=bool(plan.fused))

        return decide.jit(self.program.loops, feed, loops, plan, steps)

    def _evaluates_itself(self) -> bool:
        return self.program.uses_own_evaluate and is_own(self.program.model, "evaluate")

    def _held_out_loop(self, plan: Plan) -> tuple[Feed, Loop]:
        assert self.held_out is not None
        feed = self._held_out_feed or self.held_out.feed_to_test()
        self._held_out_feed, loop = self._test_loop(feed, plan)
        return self._held_out_feed, loop

    def _test_loop(self, feed: Feed, plan: Plan) -> tuple[Feed, Loop]:
        jit = "none"
        if plan.jit not in ("none", "update", None) and not self.program.loops.replicated:
            jit = "loop" if feed.kind == "resident" else "step"
        if jit == "loop" and isinstance(feed, Resident):
            feed = feed.of_these_rows()
        loop = self.program.loops.loop("test_step", feed, jit, fused=bool(plan.fused))
        if jit == "loop" and loop.logs_are_open:
            loop = self.program.loops.loop("test_step", feed, "step", fused=bool(plan.fused))
        return feed, loop

    def _validation(self, listed: Callbacks, plan: Plan) -> Validation | None:
        if self.held_out is None:
            return None
        source = self.held_out
        if not self._evaluates_itself():
            feed, loop = self._held_out_loop(plan)
            return Validation(self._evaluation(source, feed, loop, listed).run, self.request.validation_freq)

        def evaluation(source: Source, feed: Feed, callbacks: Callbacks) -> Evaluation:
            return self._evaluation(source, *self._test_loop(feed, plan), callbacks)

        own = OwnEvaluation(
            self.program.model,
            self.validation or {},
            listed,
            evaluation,
            (source, lambda: self._held_out_loop(plan)[0]),
        )
        return Validation(own.run, self.request.validation_freq)

    def _evaluation(self, source: Source, feed: Feed, loop: Loop, callbacks: Callbacks) -> Evaluation:
        return Evaluation(
            self.program.course,
            loop,
            feed,
            callbacks=callbacks,
            steps=source.steps_per_epoch,
            adapter=source.adapter,
            agreed=self.group.fewest,
        )

    def _seed(self) -> int:
        """From TensorFlow's global seed, if there is one, and the updates done so far: no two calls in a row
        use the same order, and the same program uses the same orders every time."""
        optimizer = getattr(self.program.model, "optimizer", None)
        done = 0 if optimizer is None else int(optimizer.iterations.numpy())
        text = f"{global_seed()} {done}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")


def _held_out(x: Data, y: Data, sample_weight: Data, batch_size: int | None, steps: int | None) -> Source:
    return sources.source(
        x, y, sample_weight, batch_size=batch_size, steps_per_epoch=steps, name="validation_data"
    )


def _call_length(plan: Plan, loop: Loop) -> CallLength:
    measured = plan.figures.get(f"{plan.jit}_us")
    return CallLength(plan.steps_per_call, measured / 1e6 if measured else loop.step_seconds)


def _with_hooks(plan: Plan, model: Model, listed: Callbacks) -> Plan:
    """One step a call (or Keras' `steps_per_execution`) where callbacks act at every batch."""
    wanting = hooks.wanting_every_batch(listed.callbacks, hooks.TRAIN)
    if not wanting:
        return plan
    count = _steps_per_execution(model)
    reason = f"{', '.join(wanting)} acts at every batch"
    return replace(plan, steps_per_call=count, reasons=(*plan.reasons, reason))


def _steps_per_execution(model: Model) -> int:
    # A trainer's model need not be compiled: only compile() sets it.
    return int(getattr(model, "steps_per_execution", 1))
