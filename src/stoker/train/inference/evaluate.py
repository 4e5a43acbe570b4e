"""`stoker.evaluate`: what `model.evaluate` returns, with many batches in one compiled call.

Losses and metrics stay in their variables on the device; the host reads them once a call. After a `stoker.fit` with
validation data the loop is there already: nothing is traced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import keras

from stoker.errors import ArgumentError
from stoker.tf_internals.keras_training import TensorFlowTrainer, check_compiled, flatten_results
from stoker.tf_internals.types import Callbacks, Data, EvaluateResult, Model
from stoker.tracking.store.tracking import scalars
from stoker.train.execution import keras_step
from stoker.train.execution.feed import Feed
from stoker.train.execution.feeding import sources
from stoker.train.execution.feeding.distributed import is_distributed
from stoker.train.execution.kept import kept
from stoker.train.execution.loop import Logs
from stoker.train.inference.arrays import check_positive
from stoker.train.inference.callbacks import Verbose
from stoker.train.inference.eligibility import keras_must
from stoker.train.inference.evaluation import Evaluation
from stoker.train.inference.tracked import tracked


def evaluate(
    model: keras.Model,
    x: Data = None,
    y: Data = None,
    batch_size: int | None = None,
    verbose: Verbose = "auto",
    sample_weight: Data = None,
    steps: int | None = None,
    callbacks: Callbacks = None,
    return_dict: bool = False,
) -> EvaluateResult:
    """`model.evaluate(...)`: same arguments, same numbers, which are kept in the store too."""
    if keras_must(model, "evaluate") or is_distributed(x):
        return TensorFlowTrainer.evaluate(
            model,
            x,
            y,
            batch_size=batch_size,
            verbose=verbose,
            sample_weight=sample_weight,
            steps=steps,
            callbacks=callbacks,
            return_dict=return_dict,
        )
    check_compiled(model, "evaluate")
    check_positive("batch_size", batch_size)
    check_positive("steps", steps)
    source = sources.source(
        x,
        y,
        sample_weight,
        batch_size=batch_size,
        steps_per_epoch=steps,
        empty="there is nothing to evaluate: x has no rows",
    )
    feed = source.feed_to_test()
    try:
        with tracked("evaluate", model, (x, y, sample_weight), batch_size=source.batch_size) as run:
            logs = _run(KerasTest(model), source, feed, callbacks, verbose)
            run.log(0, scalars(logs))
    finally:
        kept(model).release()
        feed.close()
    return logs if return_dict else flatten_results(model, logs)


def _run(test: KerasTest, source: sources.Source, feed: Feed, callbacks: Callbacks, verbose: Verbose) -> Logs:
    listed = callbacks
    if not isinstance(callbacks, keras.callbacks.CallbackList):
        steps = source.steps_per_epoch or feed.steps
        options = {"verbose": verbose, "epochs": 1, "steps": steps, "model": test.model}
        listed = keras.callbacks.CallbackList(callbacks, add_progbar=verbose != 0, **options)
    jit = "step" if test.model.jit_compile else "none"
    evaluation = Evaluation(
        test,
        keras_step.keras_loop(test.model, "test_step", feed, jit),
        feed,
        callbacks=listed,
        steps=source.steps_per_epoch,
        adapter=source.adapter,
    )
    logs = evaluation.run()
    if evaluation.steps_ran == 0:
        raise ArgumentError("there is nothing to evaluate: the data had no batch")
    return logs


class KerasTest:
    """A compiled Keras model and its own `test_step`."""

    def __init__(self, model: Model) -> None:
        self.model = model

    @contextmanager
    def validating(self) -> Iterator[None]:
        self.model.reset_metrics()
        yield

    def results(self, logs: Logs) -> Logs:
        return keras_step.results(self.model, logs)
