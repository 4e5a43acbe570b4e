"""`stoker.Log`: a Keras loop in the store, as a callback.

    model.fit(data, callbacks=[stoker.Log("baseline", params={"rate": 1e-3})])

Importing this module imports Keras.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from stoker.errors import whole_number
from stoker.tracking.store import address, origins
from stoker.tracking.store.tracking import Run, current, scalars


class Log(keras.callbacks.Callback):  # type: ignore[misc]
    """Keeps what a Keras loop reports: the logs of its batches and epochs, its parameters, how it ended.

    Args:
        name: what the run is called, if not like the model.
        params: parameters to keep beside those Keras knows.
        store: its URL, if not the one of `STOKER_STORE` or `[tool.stoker]`.
        every: log every so many batches; the results of an epoch are always kept.

    Keras has read the logs before it calls its callbacks: this adds no sync. `stoker.fit` keeps its runs by itself:
    there, `Log` names the run and adds to its parameters.
    """

    every_batch = False

    def __init__(
        self,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        store: str | None = None,
        every: int = 1,
    ) -> None:
        super().__init__()
        self._every = whole_number("every", every, least=1)
        self._name = name
        self._given = dict(params or {})
        self._store = address.find(store)
        self._run: Run | None = None
        self._training = False
        self._step = self._epoch_start = 0

    def on_train_begin(self, logs: Any = None) -> None:
        """`fit` begins."""
        around = current()
        if around is not None and around.kind == "train":
            if self._name is not None:
                around.change(name=self._name)
            around.params(**self._given)
            return
        self._training = True
        self._step = self._epoch_start = 0
        known = {name: self.params.get(name) for name in ("epochs", "steps")}
        self._begin("train", {**known, **_optimizer(self.model)})

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Batches are counted on from here."""
        self._epoch_start = self._step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """A step, or several of one execution."""
        before, self._step = self._step, self._epoch_start + batch + 1
        if self._run is not None and self._training and before // self._every != self._step // self._every:
            self._run.log(self._step, scalars(logs or {}))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """The results of an epoch."""
        if self._run is not None and self._training:
            results = scalars(logs or {})
            # Of the training's own, the last batch has told the same.
            told = (
                {} if self._step % self._every else {name for name in results if not name.startswith("val_")}
            )
            kept = {name: value for name, value in results.items() if name not in told}
            self._run.log(self._step, {**kept, "epoch": epoch + 1})

    def on_train_end(self, logs: Any = None) -> None:
        """`fit` ends."""
        self._training = False
        self._finish(steps=self._step)

    def on_test_begin(self, logs: Any = None) -> None:
        """`evaluate` begins, unless it is the validation inside `fit`."""
        around = current()
        if not self._training and (around is None or around.kind not in ("train", "evaluate")):
            self._begin("evaluate", {"steps": self.params.get("steps")})

    def on_test_end(self, logs: Any = None) -> None:
        """`evaluate` ends."""
        if self._run is not None and not self._training:
            self._run.log(0, scalars(logs or {}))
            self._finish()

    def _begin(self, kind: str, known: dict[str, Any]) -> None:
        # A loop that ended with an exception never told us.
        if self._run is not None:
            self._run.finish("failed")
        name = str(self.model.name)
        params = {"model": name, **known, **self._given}
        self._run = Run(self._name or name, params, store=self._store, kind=kind)
        if kind == "train":
            origins.note(self.model, self._run)

    def _finish(self, **columns: Any) -> None:
        if self._run is not None:
            self._run.finish(**columns)
            self._run = None


def _optimizer(model: Any) -> dict[str, Any]:
    """The optimizer's name and its rate: one read, before the first step."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is None:
        return {}
    return {
        "optimizer": type(optimizer).__name__,
        "learning_rate": optimizer.get_config().get("learning_rate"),
    }
