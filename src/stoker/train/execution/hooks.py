"""Keras' lists of callbacks, and which callbacks must be called for every batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import keras

from stoker.tf_internals.keras_training import does_nothing, profiles
from stoker.tf_internals.types import Callback, Callbacks, Model, Verbose

TRAIN = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
TEST = ("on_test_batch_begin", "on_test_batch_end")
PREDICT = ("on_predict_batch_begin", "on_predict_batch_end")


def list_callbacks(
    model: Model, callbacks: Callbacks, verbose: Verbose, steps: int | None
) -> keras.callbacks.CallbackList:
    """List the callbacks of an evaluation or prediction as Keras does, with its bar unless silent."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks
    params = {"verbose": verbose, "epochs": 1, "steps": steps}
    return keras.callbacks.CallbackList(callbacks, add_progbar=verbose != 0, model=model, **params)


def list_training_callbacks(
    model: Model, callbacks: Callbacks, verbose: Verbose, epochs: int, steps: int | None, progress: Callback
) -> keras.callbacks.CallbackList:
    """List the callbacks in Keras' order, with a history and, unless silent, a progress bar if there is none yet."""
    if isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks
    params = {"verbose": verbose, "epochs": epochs, "steps": steps}
    listed = keras.callbacks.CallbackList(callbacks, add_history=True, model=model, **params)
    if verbose != 0 and not any(isinstance(one, keras.callbacks.ProgbarLogger) for one in listed.callbacks):
        progress.set_model(model)
        progress.set_params(params)
        listed.callbacks.append(progress)
    return listed


def list_batch_callbacks(callbacks: Iterable[Callback], hooks: Sequence[str] = TRAIN) -> list[str]:
    """Return the names of the callbacks that act at every batch."""
    return [type(one).__name__ for one in callbacks if _acts_on_batches(one, hooks)]


def _acts_on_batches(callback: Callback, hooks: Sequence[str]) -> bool:
    if all(does_nothing(getattr(callback, hook)) for hook in hooks):
        return False
    if not getattr(callback, "every_batch", True):
        return False
    # Keras' own callbacks whose batch hooks do nothing as they are set, or nothing that depends on the batch.
    kind = type(callback)
    if isinstance(callback, keras.callbacks.ProgbarLogger):
        return kind.__module__.partition(".")[0] not in ("keras", "stoker")
    if kind in (keras.callbacks.ModelCheckpoint, keras.callbacks.BackupAndRestore):
        return bool(callback.save_freq != "epoch")
    if kind is keras.callbacks.TensorBoard:
        return bool(callback.update_freq != "epoch" or callback.write_steps_per_second or profiles(callback))
    return True
