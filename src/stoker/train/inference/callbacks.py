"""The callbacks of predict, and the bar: Keras' own, called between compiled calls.

A callback with hooks on batches gets every batch (every execution, where the model was compiled with
`steps_per_execution`), at the price of one call for each; without one the hooks that remain (begin, end, the bar)
are called once a compiled call.
"""

from __future__ import annotations

import keras

from stoker.tf_internals.types import Callbacks, LogValue
from stoker.train.execution.hooks import PREDICT, wanting_every_batch

Verbose = int | str


class PredictHooks:
    """The callbacks of one prediction."""

    def __init__(
        self, model: keras.Model, callbacks: Callbacks, verbose: Verbose, batches: int | None
    ) -> None:
        self._list = callbacks
        if not isinstance(callbacks, keras.callbacks.CallbackList):
            self._list = keras.callbacks.CallbackList(
                callbacks,
                add_progbar=verbose != 0,
                verbose=verbose,
                epochs=1,
                steps=batches,
                model=model,
            )
        self._model = model
        self.each_batch = bool(wanting_every_batch(self._list.callbacks, PREDICT))
        self.per_execution = int(getattr(model, "steps_per_execution", 1))

    def begin(self) -> None:
        self._model.stop_predicting = False
        self._list.on_predict_begin()

    def before_batch(self, batch: int) -> None:
        self._list.on_predict_batch_begin(batch)

    def after_batch(self, batch: int, logs: LogValue) -> bool:
        """False where a callback wants to stop."""
        self._list.on_predict_batch_end(batch, logs)
        return not self._model.stop_predicting

    def end(self) -> None:
        self._list.on_predict_end()
