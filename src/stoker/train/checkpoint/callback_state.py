"""The state of callbacks between epochs, so that a resumed run stops, slows down and logs as the first would have.

| callback | saved |
|---|---|
| EarlyStopping | wait, best, best_epoch, stopped_epoch, best weights |
| ReduceLROnPlateau | wait, best, cooldown (the rate itself is an optimizer variable) |
| ModelCheckpoint | best, batches since the last save |
| CSVLogger | the file as it was, without the rows of epochs that run again |
| TensorBoard | the numbers of the batches (event files of the lost part stay) |
| SwapEMAWeights | which weights are in the model |
| History | history, epochs |
| LearningRateScheduler, LambdaCallback, TerminateOnNaN, RemoteMonitor, BackupAndRestore | nothing to save |
| your own, with `get_state()` and `set_state(state)` | what `get_state` returns |
| your own, without | nothing; a warning says so at the resume |

Call `restore_callbacks` after `on_train_begin`, which resets most callbacks.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

import keras

from stoker.tf_internals.keras_training import CALLBACK_ATTRIBUTES, CALLBACK_STATE
from stoker.tf_internals.types import Callback
from stoker.train.checkpoint.options import CheckpointWarning
from stoker.train.execution.epoch_steps import Stateful


class CsvState(TypedDict):
    """The state of a `CSVLogger`: the size of a file that it appends to, or the text of one that it overwrites."""

    size: int | None
    text: bytes | None
    keys: list[str] | None


def callbacks_state(callbacks: Iterable[Callback]) -> dict[str, object]:
    """Return the callbacks' state, as plain values and arrays that `Saver.save` takes within `progress`."""
    return {name: _state(callback) for name, callback in _name_callbacks(callbacks)}


def restore_callbacks(callbacks: Iterable[Callback], state: Mapping[str, Any]) -> None:
    """Restore the callbacks' state, matched by class and order; call it after `on_train_begin`."""
    for name, callback in _name_callbacks(callbacks):
        saved = state.get(name)
        if saved is None:
            _warn(f"the callback {name} was not there when the checkpoint was saved: it starts over")
            continue
        for attribute, value in saved["attributes"].items():
            setattr(callback, attribute, value)
        if isinstance(callback, keras.callbacks.CSVLogger):
            _restore_csv(callback, saved["csv"])
        if isinstance(callback, Stateful):
            callback.set_state(saved["own"])
        elif _has_unsaved_values(callback):
            _warn(
                f"the callback {name} has no get_state() and set_state(): what it remembers starts over in this run"
            )


def _name_callbacks(callbacks: Iterable[Callback]) -> list[tuple[str, Callback]]:
    counts: dict[str, int] = {}
    named = []
    for callback in callbacks:
        kind = type(callback).__name__
        counts[kind] = counts.get(kind, 0) + 1
        named.append((kind if counts[kind] == 1 else f"{kind} {counts[kind]}", callback))
    return named


def _state(callback: Callback) -> dict[str, object]:
    attributes: dict[str, object] = {}
    for kind, names in CALLBACK_STATE:
        if isinstance(callback, kind):
            # Some attributes exist only once they were needed.
            attributes |= {name: vars(callback)[name] for name in names if name in vars(callback)}
    state: dict[str, object] = {"attributes": attributes}
    if isinstance(callback, keras.callbacks.CSVLogger):
        state["csv"] = _csv_state(callback)
    if isinstance(callback, Stateful):
        state["own"] = callback.get_state()
    return state


def _csv_state(callback: Callback) -> CsvState:
    """Return a file's size with `append`, as it may be long; otherwise its text, as `on_train_begin` empties it."""
    if not os.path.exists(callback.filename):
        return {"size": 0, "text": b"", "keys": None}
    keys = list(callback.keys) if callback.keys is not None else None
    if callback.append:
        return {"size": os.path.getsize(callback.filename), "text": None, "keys": keys}
    with open(callback.filename, "rb") as file:
        return {"size": None, "text": file.read(), "keys": keys}


def _restore_csv(callback: Callback, saved: CsvState) -> None:
    if saved["size"] is not None and os.path.exists(callback.filename):
        os.truncate(callback.filename, min(saved["size"], os.path.getsize(callback.filename)))
        callback.append_header = saved["size"] == 0
    if saved["text"]:
        with open(callback.filename, "wb") as file:
            file.write(saved["text"])
        callback.csv_file.seek(0, os.SEEK_END)
        callback.append_header = False
    callback.keys = saved["keys"]


def _has_unsaved_values(callback: Callback) -> bool:
    """Return whether a callback is the user's own and holds values that Keras' base class does not."""
    if type(callback).__module__.startswith("keras."):
        return False
    if any(isinstance(callback, kind) for kind, _ in CALLBACK_STATE):
        return False
    return any(
        not callable(value) for name, value in vars(callback).items() if name not in CALLBACK_ATTRIBUTES
    )


def _warn(message: str) -> None:
    warnings.warn(message, CheckpointWarning, stacklevel=3)
