"""One training run: from data and a program to an engine that trains, with the plan decided."""

from __future__ import annotations

import hashlib
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from stoker.attach import announced
from stoker.execution import hooks
from stoker.execution.call_length import Tempo
from stoker.execution.feed import Feed
from stoker.execution.loop import Loop
from stoker.train.checkpoint.options import Checkpoint
from stoker.train.checkpoint.resume import Keeper
from stoker.train.checkpoint.saver import saved_progress
from stoker.train.feeding.feeds import Streamed
from stoker.train.feeding.sources import Source
from stoker.train.loop.epoch_steps import Pace
from stoker.train.loop.epochs import Engine, Stretch, Validation
from stoker.train.loop.program import Program
from stoker.train.loop.progress import Progress, show_plan, show_resume
from stoker.train.planning import decide
from stoker.train.planning.largest_batch import too_large
from stoker.train.planning.plan import Plan

# Compiled loops by model: the next `fit` on data of the same shape compiles nothing.
_LOOPS: weakref.WeakKeyDictionary[Any, dict[Any, tuple[Any, Loop]]] = weakref.WeakKeyDictionary()


@dataclass
class Run:
    """What to train, on what, how long."""

    program: Program
    data: Source
    held_out: Source | None = None
    callbacks: Any = None
    verbose: Any = "auto"
    epochs: int = 1
    initial_epoch: int = 0
    validation_freq: int | Sequence[int] = 1
    plan: Plan = field(default_factory=Plan)
    seed: int | None = None
    checkpoint: Checkpoint | None = None
    _held_out_feed: Feed | None = None

    def train(self) -> Any:
        """Decide, train, and give the history."""
        with announced.region(announced.LOOP, batch_size=int(self.data.adapter.batch_size or 0)):
            return self._train()

    def _train(self) -> Any:
        model = self.program.model
        self._take_over_from_checkpoint()
        plan = decide.feed_kind(self.data, self.plan)
        feed = self.data.feed(plan.feed or "resident", self._seed())
        pace = Pace(feed, self.data.steps_per_epoch, self.data.adapter)
        pace.reset()
        listed = hooks.callback_list(
            model, self.callbacks, self.verbose, self.epochs, pace.target, Progress()
        )
        model.stop_training = False
        keeper = self._keeper(feed, plan)
        try:
            listed.on_train_begin()
            plan = self._decided(plan, feed, pace, listed)
            if self.verbose:
                show_plan(plan)
            if self.verbose and keeper is not None and keeper.progress is not None:
                show_resume(keeper.progress, keeper.directory, self.epochs)
            engine = Engine(
                self.program,
                Stretch(self._loop(feed, "train_step", plan.jit), pace, _tempo(plan)),
                listed,
                epochs=self.epochs,
                initial_epoch=self.initial_epoch,
                validation=self._validation(listed, plan),
                plan=plan,
                keeper=keeper,
            )
            return engine.train()
        except tf.errors.ResourceExhaustedError as error:
            raise too_large(self.program, self.data) from error
        finally:
            release_data(self.program)
            if keeper is not None:
                keeper.saver.__exit__(*sys.exc_info())
            for used in (feed, self._held_out_feed):
                if isinstance(used, Streamed):
                    used.close()

    def _take_over_from_checkpoint(self) -> None:
        """What an earlier process of this run decided holds."""
        saved = saved_progress(self.checkpoint) if self.checkpoint is not None else None
        if saved is None:
            return
        decided = Plan(**{**saved["plan"], "reasons": tuple(saved["plan"]["reasons"])})
        pinned = replace(decided, reasons=("as the checkpoint has it",), steps_per_call=None)
        self.plan = replace(
            pinned,
            feed=self.plan.feed or pinned.feed,
            jit=self.plan.jit or pinned.jit,
            steps_per_call=self.plan.steps_per_call,
        )

    def _keeper(self, feed: Feed, plan: Plan) -> Keeper | None:
        if self.checkpoint is None:
            return None
        graphs = [self._loop(feed, "train_step", plan.jit).build().graph]
        if self.held_out is not None:
            graphs.append(self._held_out_loop(plan)[1].build().graph)
        if not self.program.fingerprint:
            self.program.fingerprint = self.data.fingerprint()
        return Keeper(self.checkpoint, self.program, graphs)

    def _decided(self, plan: Plan, feed: Feed, pace: Pace, listed: Any) -> Plan:
        plan = _with_hooks(plan, self.program.model, listed, hooks.TRAIN)
        steps = pace.target and pace.target * (self.epochs - self.initial_epoch)

        def loops(jit: str) -> Loop:
            return self._loop(feed, "train_step", jit)

        return decide.jit(self.program, feed, loops, plan, steps)

    def _loop(self, feed: Feed, kind: str, jit: str | None) -> Loop:
        return loop_of(self.program, feed, kind, jit or "none")

    def _held_out_loop(self, plan: Plan) -> tuple[Feed, Loop]:
        assert self.held_out is not None
        if self._held_out_feed is None:
            kind = decide.feed_kind(self.held_out, Plan()).feed or "streamed"
            self._held_out_feed = self.held_out.feed(kind, 0)
        feed = self._held_out_feed
        compiled = "loop" if feed.kind == "resident" else "step"
        return feed, self._loop(feed, "test_step", "none" if plan.jit in ("none", None) else compiled)

    def _validation(self, listed: Any, plan: Plan) -> Validation | None:
        if self.held_out is None:
            return None
        feed, loop = self._held_out_loop(plan)
        pace = Pace(feed, self.held_out.steps_per_epoch, self.held_out.adapter)
        calls = _with_hooks(Plan(), self.program.model, listed, hooks.TEST).steps_per_call
        return Validation(Stretch(loop, pace, Tempo(calls)), self.validation_freq)

    def _seed(self) -> int:
        """From TensorFlow's global seed, if there is one, and the updates done so far: no two calls in a row
        use the same order, and the same program uses the same orders every time."""
        if self.seed is not None:
            return self.seed
        optimizer = getattr(self.program.model, "optimizer", None)
        done = 0 if optimizer is None else int(optimizer.iterations.numpy())
        text = f"{context.global_seed()} {done}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")


def loop_of(program: Program, feed: Feed, kind: str, jit: str) -> Loop:
    """The loop for this step and feed; the one compiled before, unless the model was compiled again since."""
    model = program.model
    loops = _LOOPS.setdefault(model, {})
    key = (kind, jit, program.eager, feed.signature())
    # compile() makes a new loss tracker: what was traced before is out of date then.
    stamp = (getattr(model, "_loss_tracker", None), program.stamp())
    made = loops.get(key)
    if made is not None and _same(made[0], stamp):
        made[1].feed = feed
        return made[1]
    loop = Loop(program.step(kind), feed, jit=jit, eager=program.eager)
    for (of_kind, _, _, signature), (of_stamp, earlier) in loops.items():
        if of_kind == kind and signature == key[3] and _same(of_stamp, stamp):
            loop.share(earlier)
    loops[key] = (stamp, loop)
    return loop


def release_data(program: Program) -> None:
    """After a run: the model's loops are kept, the data they ran over is not."""
    for _, loop in _LOOPS.get(program.model, {}).values():
        loop.release()


def _same(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    return all(old is new for old, new in zip(one, other, strict=True))


def _tempo(plan: Plan) -> Tempo:
    measured = plan.figures.get(f"{plan.jit}_us")
    return Tempo(plan.steps_per_call, measured / 1e6 if measured else None)


def _with_hooks(plan: Plan, model: Any, listed: Any, kind: Sequence[str]) -> Plan:
    """One step a call (or Keras' `steps_per_execution`) where callbacks act at every batch."""
    wanting = hooks.wanting_every_batch(listed.callbacks, kind)
    if not wanting:
        return plan
    count = int(getattr(model, "steps_per_execution", 1))
    reason = f"{', '.join(wanting)} acts at every batch"
    return replace(plan, steps_per_call=count, reasons=(*plan.reasons, reason))
