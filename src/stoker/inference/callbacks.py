"""The callbacks of predict and evaluate, and the bar: Keras' own, called between compiled calls.

A callback with hooks on batches gets every batch, at the price of one call a batch; without one the hooks that
remain (begin, end, the bar) are called once a compiled call.
"""

from __future__ import annotations

from typing import Any

import keras

from stoker.execution.hooks import wanting_every_batch

Verbose = int | str


class InferenceHooks:
    """`mode` is "predict" or "test", as in the names of the hooks."""

    def __init__(
        self, mode: str, model: keras.Model, callbacks: Any, verbose: Verbose, batches: int | None
    ) -> None:
        self._mode = mode
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
        batch_hooks = (f"on_{mode}_batch_begin", f"on_{mode}_batch_end")
        self.each_batch = bool(wanting_every_batch(self._list.callbacks, batch_hooks))

    def begin(self) -> None:
        setattr(self._model, self._stop_name, False)
        getattr(self._list, f"on_{self._mode}_begin")()

    def before_batch(self, batch: int) -> None:
        getattr(self._list, f"on_{self._mode}_batch_begin")(batch)

    def after_batch(self, batch: int, logs: Any) -> bool:
        """False where a callback wants to stop."""
        getattr(self._list, f"on_{self._mode}_batch_end")(batch, logs)
        return not getattr(self._model, self._stop_name)

    def end(self, logs: Any = None) -> None:
        getattr(self._list, f"on_{self._mode}_end")(logs)

    @property
    def _stop_name(self) -> str:
        return "stop_predicting" if self._mode == "predict" else "stop_evaluating"
