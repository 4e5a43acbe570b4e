"""The validations of a training run, over held-out data: by test steps, or by an `evaluate` of the model's own.

A model's own `evaluate` is called as Keras' `fit` calls it; the call that it passes on to Keras runs in a compiled
loop.
"""

from __future__ import annotations

import keras

from stoker.tf_internals.keras_training import flatten_results, is_validated
from stoker.tf_internals.types import Callbacks, Data, EvaluateResult, Graph, Verbose
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.feeding import sources
from stoker.train.execution.feeding.resident import Resident
from stoker.train.execution.hooks import list_callbacks
from stoker.train.execution.loop import CompiledLoop, Logs
from stoker.train.execution.own_methods import is_own, redirect_method
from stoker.train.inference.evaluation import Evaluation
from stoker.train.planning.plan import Plan
from stoker.train.program import TrainingProgram
from stoker.train.request import FitRequest


class Validation:
    """How and when to validate, and on which data. Nothing is traced before it is needed."""

    def __init__(self, program: TrainingProgram, request: FitRequest) -> None:
        """`request` must have validation data."""
        self._program = program
        self._frequency = request.validation_freq
        self._arguments = request.evaluate_arguments()
        self._source = self._read(**self._arguments, name="validation_data")
        self._feed: BatchFeed | None = None
        self._plan = Plan()
        self._callbacks: Callbacks = None
        self._evaluation: Evaluation | None = None
        self._by_model = program.uses_own_evaluate and is_own(program.model, "evaluate")

    def graphs(self, plan: Plan) -> list[Graph]:
        """Return the graph of the test step. For a model's own `evaluate`, it is known only once that is called."""
        return [] if self._by_model else [self._own_loop(plan).build().graph]

    def prepare(self, plan: Plan, callbacks: keras.callbacks.CallbackList) -> None:
        """Use this plan for validations, and the callbacks of the training."""
        self._plan, self._callbacks = plan, callbacks
        if not self._by_model:
            loop = self._own_loop(plan)
            assert self._feed is not None
            self._evaluation = self._evaluate_with(self._source, self._feed, loop, callbacks)

    def is_due(self, epoch: int) -> bool:
        return is_validated(self._program.model, epoch, self._frequency)

    def run(self) -> Logs:
        """Run one validation."""
        if self._evaluation is not None:
            return self._evaluation.run()
        model = self._program.model
        with redirect_method(model, "evaluate", self._evaluate_instead):
            logs: Logs = model.evaluate(
                **self._arguments, callbacks=self._callbacks, return_dict=True, _use_cached_eval_dataset=True
            )
        return logs

    def close(self) -> None:
        if self._feed is not None:
            self._feed.close()

    def _evaluate_instead(
        self,
        x: Data = None,
        y: Data = None,
        batch_size: int | None = None,
        verbose: Verbose = "auto",
        sample_weight: Data = None,
        steps: int | None = None,
        callbacks: Callbacks = None,
        return_dict: bool = False,
        _use_cached_eval_dataset: bool = False,
    ) -> EvaluateResult:
        """Replace Keras' `evaluate`. As there, cached data takes precedence over the arguments."""
        model, given = self._program.model, None
        if _use_cached_eval_dataset:
            source, loop, feed = self._source, self._own_loop(self._plan), self._feed
            assert feed is not None
        else:
            source = self._read(x, y, sample_weight, batch_size, steps)
            given = source.feed_to_test()
            feed, loop = self._loop_over(given, self._plan)
        try:
            listed = list_callbacks(model, callbacks, verbose, feed.steps)
            logs = self._evaluate_with(source, feed, loop, listed).run()
        finally:
            if given is not None:
                given.close()
        return logs if return_dict else flatten_results(model, logs)

    def _evaluate_with(
        self,
        source: sources.DataSource,
        feed: BatchFeed,
        loop: CompiledLoop,
        callbacks: keras.callbacks.CallbackList,
    ) -> Evaluation:
        program = self._program
        return Evaluation(
            program.course, loop, feed, source, callbacks=callbacks, agreed=program.group.agree_on_fewest
        )

    def _own_loop(self, plan: Plan) -> CompiledLoop:
        """Return the loop over the held-out data, whose feed is `self._feed`."""
        self._feed, loop = self._loop_over(self._feed or self._source.feed_to_test(), plan)
        return loop

    def _loop_over(self, feed: BatchFeed, plan: Plan) -> tuple[BatchFeed, CompiledLoop]:
        jit, loops = "none", self._program.loops
        if plan.jit not in ("none", "update", None) and not loops.replicated:
            jit = "loop" if feed.kind == "resident" else "step"
        if jit == "loop" and isinstance(feed, Resident):
            feed = feed.fix_row_count()
        loop = loops.loop("test_step", feed, jit, fused=bool(plan.fused))
        if jit == "loop" and loop.logs_are_open:
            loop = loops.loop("test_step", feed, "step", fused=bool(plan.fused))
        return feed, loop

    @staticmethod
    def _read(
        x: Data, y: Data, sample_weight: Data, batch_size: int | None, steps: int | None, name: str = "x"
    ) -> sources.DataSource:
        return sources.source(x, y, sample_weight, batch_size=batch_size, steps_per_epoch=steps, name=name)
