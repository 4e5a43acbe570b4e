"""`stoker.Log`: a callback that keeps a Keras loop in the store.

    model.fit(data, callbacks=[stoker.Log("baseline", params={"rate": 1e-3})])

Importing this module imports Keras.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from stoker.errors import whole_number
from stoker.tracking.store import address
from stoker.tracking.store.origins import note_origin
from stoker.tracking.store.surroundings import describe_optimizer
from stoker.tracking.store.tracking import Logs, TrackedRun, current_run, scalars


class Log(keras.callbacks.Callback):
    """Log what a Keras loop reports: the logs of its batches and epochs, its parameters, and how it ended.

    Args:
        name: the run's name (the model's name).
        params: parameters to keep in addition to those that Keras knows.
        store: the URL of the store, if not that of `STOKER_STORE` or `[tool.stoker]`.
        every: log one batch in this many; the results of an epoch are always kept.

    Keras has read the logs before it calls its callbacks, so this adds no sync. `stoker.fit` keeps its runs itself;
    there, `Log` names the run and adds to its parameters.
    """

    every_batch = False

    def __init__(
        self,
        name: str | None = None,
        params: Mapping[str, object] | None = None,
        *,
        store: str | None = None,
        every: int = 1,
    ) -> None:
        super().__init__()
        self._every = whole_number("every", every, least=1)
        self._name = name
        self._own_params = dict(params or {})
        self._store = address.find(store)
        self._run: TrackedRun | None = None
        self._training = False
        self._step = self._epoch_start = 0

    def on_train_begin(self, logs: Logs | None = None) -> None:
        """Start a run, or name the one that `stoker.fit` has started."""
        outer = current_run()
        if outer is not None and outer.kind == "train":
            if self._name is not None:
                outer.change(name=self._name)
            outer.params(**self._own_params)
            return
        self._training = True
        self._step = self._epoch_start = 0
        known = {name: self.params.get(name) for name in ("epochs", "steps")}
        self._start("train", {**known, **describe_optimizer(self.model)})

    def on_epoch_begin(self, epoch: int, logs: Logs | None = None) -> None:
        """Note the step at which the epoch starts."""
        self._epoch_start = self._step

    def on_train_batch_end(self, batch: int, logs: Logs | None = None) -> None:
        """Log a step, or several that Keras ran in one call."""
        before, self._step = self._step, self._epoch_start + batch + 1
        if self._run is not None and self._training and before // self._every != self._step // self._every:
            self._run.log(self._step, scalars(logs or {}))

    def on_epoch_end(self, epoch: int, logs: Logs | None = None) -> None:
        """Log the results of an epoch."""
        if self._run is not None and self._training:
            results = scalars(logs or {})
            if self._step % self._every == 0:
                # The last batch has already logged the training's own results.
                results = {name: value for name, value in results.items() if name.startswith("val_")}
            self._run.log(self._step, {**results, "epoch": epoch + 1})

    def on_train_end(self, logs: Logs | None = None) -> None:
        """End the run of a `fit`."""
        self._training = False
        self._finish(steps=self._step)

    def on_test_begin(self, logs: Logs | None = None) -> None:
        """Start a run for `evaluate`, but not for the validation inside `fit`."""
        outer = current_run()
        if not self._training and (outer is None or outer.kind not in ("train", "evaluate")):
            self._start("evaluate", {"steps": self.params.get("steps")})

    def on_test_end(self, logs: Logs | None = None) -> None:
        """End the run of an `evaluate`."""
        if self._run is not None and not self._training:
            self._run.log(0, scalars(logs or {}))
            self._finish()

    def _start(self, kind: str, known: dict[str, object]) -> None:
        # Keras does not call us when a loop ends with an exception.
        if self._run is not None:
            self._run.finish("failed")
        name = str(self.model.name)
        params = {"model": name, **known, **self._own_params}
        self._run = TrackedRun(self._name or name, params, store=self._store, kind=kind)
        if kind == "train":
            note_origin(self.model, self._run)

    def _finish(self, **columns: Any) -> None:
        if self._run is not None:
            self._run.finish(**columns)
            self._run = None
