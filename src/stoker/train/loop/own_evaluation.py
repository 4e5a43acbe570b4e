"""Validation through an `evaluate` of the model's own: called as Keras' `fit` calls it, and compiled where it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import keras

from stoker.tf_internals.keras_training import flatten_results
from stoker.tf_internals.types import Callbacks, Data, EvaluateResult, Model, Verbose
from stoker.train.execution.feed import Feed
from stoker.train.execution.feeding import sources
from stoker.train.execution.loop import Logs
from stoker.train.execution.own_methods import redirected
from stoker.train.inference.evaluation import Evaluation

# An evaluation of a source over a feed of it, with callbacks.
Evaluations = Callable[[sources.Source, Feed, Callbacks], Evaluation]


class OwnEvaluation:
    """The validations of one training run."""

    def __init__(
        self,
        model: Model,
        arguments: Mapping[str, object],
        callbacks: keras.callbacks.CallbackList,
        evaluations: Evaluations,
        held_out: tuple[sources.Source, Callable[[], Feed]],
    ) -> None:
        """Nothing is read or traced before the model's own method asks for it.

        Args:
            model: a model with an `evaluate` of its own.
            arguments: what that gets, but for the callbacks.
            callbacks: those of the training.
            evaluations: makes an evaluation.
            held_out: the validation data as the training has it, and its feed.
        """
        self._model = model
        self._arguments = arguments
        self._callbacks = callbacks
        self._evaluations = evaluations
        self._held_out = held_out

    def run(self) -> Logs:
        """One validation; what the model's own method returns."""
        with redirected(self._model, "evaluate", self._evaluate):
            logs: Logs = self._model.evaluate(
                **self._arguments,
                callbacks=self._callbacks,
                return_dict=True,
                _use_cached_eval_dataset=True,
            )
        return logs

    def _evaluate(
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
        """In place of Keras' `evaluate`: as there, the cached data goes before what is given."""
        if _use_cached_eval_dataset:
            source, feed_of = self._held_out
            logs = self._evaluation(source, feed_of(), callbacks, verbose).run()
        else:
            source = sources.source(x, y, sample_weight, batch_size=batch_size, steps_per_epoch=steps)
            feed = source.feed_to_test()
            try:
                logs = self._evaluation(source, feed, callbacks, verbose).run()
            finally:
                feed.close()
        return logs if return_dict else flatten_results(self._model, logs)

    def _evaluation(
        self, source: sources.Source, feed: Feed, callbacks: Callbacks, verbose: Verbose
    ) -> Evaluation:
        listed = callbacks
        if not isinstance(listed, keras.callbacks.CallbackList):
            options = {"verbose": verbose, "epochs": 1, "steps": feed.steps, "model": self._model}
            listed = keras.callbacks.CallbackList(callbacks, add_progbar=verbose != 0, **options)
        return self._evaluations(source, feed, listed)
