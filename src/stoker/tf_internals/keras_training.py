"""Keras' trainer: the parts of a compiled model, the functions its loops call, its callbacks and its progress bar."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras

# Import the module itself, for what differs between versions.
from keras.src.backend.tensorflow import trainer as _trainer

# The class from which `keras.Model` has `fit`, `evaluate`, `predict` and the steps: on TensorFlow, and on any backend.
from keras.src.backend.tensorflow.trainer import TensorFlowTrainer as TensorFlowTrainer
from keras.src.trainers.trainer import Trainer as Trainer
from keras.src.trainers.trainer import model_supports_jit
from keras.src.utils import io_utils, is_default
from keras.src.utils.naming import to_snake_case
from keras.src.utils.python_utils import pythonify_logs

from stoker.logs import PROGRESS
from stoker.tf_internals import Place
from stoker.tf_internals.types import Callback, EvaluateResult, LogValue, Loss, Metric, Model, Nest, Strategy

# Where the classes of Keras 2 are defined: tf_keras, tf.keras before 2.16, the package keras before 3.
KERAS_2 = ("tf_keras.", "tensorflow.python.keras.", "keras.engine.", "keras.src.engine.")
# What fit, evaluate and predict write on a model as they run. No step reads it while it is traced.
BOOKKEEPING = frozenset(
    {
        "_compiled_trainable_state",
        "_eval_epoch_iterator",
        "_initial_epoch",
        "history",
        "optimizer",
        "predict_function",
        "steps_per_execution",
        "stop_evaluating",
        "stop_predicting",
        "stop_training",
        "test_function",
        "train_function",
    }
)
# The attributes that Keras' callbacks remember from epoch to epoch.
CALLBACK_STATE: tuple[tuple[type, tuple[str, ...]], ...] = (
    (
        keras.callbacks.EarlyStopping,
        ("wait", "best", "best_epoch", "stopped_epoch", "best_weights"),
    ),
    (keras.callbacks.ReduceLROnPlateau, ("wait", "best", "cooldown_counter")),
    (
        keras.callbacks.ModelCheckpoint,
        ("best", "_batches_seen_since_last_saving", "_last_batch_seen", "_current_epoch"),
    ),
    (keras.callbacks.TensorBoard, ("_global_train_batch", "_global_test_batch")),
    (keras.callbacks.SwapEMAWeights, ("_ema_weights_in_model",)),
    (keras.callbacks.History, ("history", "epoch")),
)
# Whether `evaluate` sorts the results of a model's own step by name. Keras 3.12 leaves them as they are.
SORTS_RESULTS = hasattr(_trainer, "pythonify_logs")
# The attributes that every callback has from Keras.
CALLBACK_ATTRIBUTES = frozenset({"params", "_model", "validation_data"})


def epoch_iterator_creation() -> Place:
    """Return the constructor of the iterator over `fit`'s data; it has `data_adapter` and `steps_per_epoch`."""
    return _trainer.TFEpochIterator, "__init__"


def filter_traceback(function: Callable[..., object]) -> Callable[..., object]:
    """Wrap a function in the filter that Keras has around `fit`, with the function as its `__wrapped__`."""
    from keras.src.utils import traceback_utils

    filtered: Callable[..., object] = traceback_utils.filter_traceback(function)
    return filtered


def is_made_by_keras(function: object) -> bool:
    """Return whether a function, or the one in a `tf.function`, is defined in Keras' own files."""
    module = getattr(getattr(function, "python_function", function), "__module__", None) or ""
    return module.startswith("keras.src.")


def strategy_of(model: Model) -> Strategy | None:
    """Return the strategy under whose scope a model was made; None if it was made under none.

    The public `distribute_strategy` gives the current strategy instead of None.
    """
    return model._distribute_strategy


def default_name(model: Model) -> str:
    """Return the name that Keras gives an unnamed model of this class; Keras appends a number."""
    return str(to_snake_case(type(model).__name__))


def build(model: Model, batch: Nest) -> None:
    """Make the variables of a compiled model, its metrics and its optimizer, as for a batch or its spec."""
    model._symbolic_build(data_batch=batch)


def supports_xla(model: Model) -> bool:
    """Return whether every layer of a model supports XLA."""
    return bool(model_supports_jit(model))


def forward(model: Model, batch: Nest, *, training: bool) -> tuple[Nest, Nest]:
    """Return a compiled model's loss for a batch, and its predictions, without updating the tracker or metrics.

    A model's public `compute_loss` may lack `training`; Keras passes it if the method takes it.
    """
    x, y, weights = keras.utils.unpack_x_y_sample_weight(batch)
    predicted = model(x, training=training) if model._call_has_training_arg else model(x)
    return model._compute_loss(
        x=x, y=y, y_pred=predicted, sample_weight=weights, training=training
    ), predicted


def loss_tracker(model: Model) -> Metric:
    """Return the tracker of the mean that logs show as "loss" for a compiled model."""
    return model._loss_tracker


def given_losses(model: Model) -> list[Loss]:
    """Return the losses that `compile` was given, as objects, functions or names."""
    compiled = model._compile_loss
    given = [] if compiled is None else keras.tree.flatten(compiled._user_loss)
    return [one for one in given if one is not None]


def has_metrics(model: Model) -> bool:
    """Return whether `compile` was given metrics."""
    return model._compile_metrics is not None


def results(model: Model, logs: Mapping[str, LogValue]) -> dict[str, LogValue]:
    """Return the logs of an epoch or evaluation, given the last step's: those logs, or what the metrics hold."""
    return dict(model._get_metrics_result_or_logs(logs))


def flatten_results(model: Model, logs: Mapping[str, LogValue]) -> EvaluateResult:
    """Return the list or number that `evaluate` returns for these logs."""
    return model._flatten_metrics_in_order(logs)


def to_numbers(logs: Mapping[str, LogValue]) -> dict[str, LogValue]:
    """Turn tensors and arrays in logs into floats, and flatten metrics that return a dict."""
    numbers: dict[str, LogValue] = pythonify_logs(logs)
    return numbers


def restored_epoch(model: Model) -> int | None:
    """Return the epoch at which a `BackupAndRestore` wants `fit` to begin; None or 0 if there is none."""
    epoch: int | None = model._initial_epoch
    return epoch


def is_validated(model: Model, epoch: int, frequency: int | Sequence[int]) -> bool:
    """Return whether `fit` evaluates after this epoch, for a `validation_freq`."""
    return bool(model._should_eval(epoch, frequency))


def does_nothing(hook: Callable[..., object]) -> bool:
    """Return whether a callback's method is the empty one of `keras.callbacks.Callback`."""
    return bool(is_default(hook))


def profiles(tensorboard: Callback) -> bool:
    """Return whether a `TensorBoard` callback was given batches to profile."""
    return bool(tensorboard._should_trace)


def show(line: str) -> None:
    """Print a line as Keras prints: to the console, or to its log if Keras is configured that way."""
    if io_utils.is_interactive_logging_enabled():
        PROGRESS.info(line)
    elif PROGRESS.isEnabledFor(logging.INFO):
        io_utils.print_msg(line)


class SpeedBar(keras.utils.Progbar):
    """Keras' bar, with the speed as `describe_speed` words it."""

    def describe_speed(self, seconds: float, unit: str) -> str:
        """Describe a speed of this many seconds per unit, in words."""
        raise NotImplementedError

    def _format_time(self, time_per_unit: float, unit_name: str) -> str:
        return self.describe_speed(time_per_unit, unit_name)


class BarCallback(keras.callbacks.ProgbarLogger):
    """Keras' callback that shows a bar, with the bar from `make_bar`."""

    progbar: Any

    def make_bar(self) -> Any:
        """Make a bar for `self.target` steps."""
        raise NotImplementedError

    def _maybe_init_progbar(self) -> None:
        if self.progbar is None:
            self.progbar = self.make_bar()
