"""The models that Stoker can run: those of Keras 3 on TensorFlow, some of which Keras itself must run."""

from __future__ import annotations

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.keras_layers import layers_of
from stoker.tf_internals.keras_training import KERAS_2, Trainer, strategy_of
from stoker.tf_internals.types import Model
from stoker.tf_internals.versions import KERAS
from stoker.train.execution.own_methods import is_own, is_set_by_user


class ModelTypeError(ArgumentError, TypeError):
    """The given model is not one that Stoker can run."""


def check_model(model: object, verb: str) -> None:
    """Refuse anything that is not a Keras 3 model on TensorFlow, including a layer mixed with Keras' `Trainer`.

    Args:
        model: the object that was given as a model.
        verb: the function that got it, such as "fit".
    """
    caller = f"stoker.{verb}"
    if is_keras_2(model):
        raise ModelTypeError(
            f"{caller} takes a Keras 3 model, and this {type(model).__name__} is one of Keras 2 (tf_keras): "
            "make it with `import keras`, and run without TF_USE_LEGACY_KERAS"
        )
    if not isinstance(model, Trainer):
        raise ModelTypeError(f"{caller} takes a keras.Model first, got {type(model).__name__}{_usage(verb)}")
    check_backend(verb)


def check_compiled(model: Model, verb: str) -> None:
    """Refuse a model without a loss and an optimizer."""
    if not model.compiled:
        raise ArgumentError(
            f"the model is not compiled. You must call `compile()` before stoker.{verb}: model.compile(optimizer, loss)"
        )


def check_backend(verb: str) -> None:
    """Refuse to run if Keras does not use TensorFlow, or is a version that was never tested."""
    if not KERAS.includes(keras.__version__):
        raise ModelTypeError(f"stoker.{verb}: {KERAS.refusal(keras.__version__)}")
    if keras.config.backend() != "tensorflow":
        raise ModelTypeError(
            f"stoker.{verb} runs on TensorFlow, but Keras runs on {keras.config.backend()}: "
            "set KERAS_BACKEND=tensorflow before Keras is imported"
        )


def is_keras_2(thing: object) -> bool:
    """Return whether the class of an object, or one that it derives from, belongs to Keras 2."""
    return any(kind.__module__.startswith(KERAS_2) for kind in type(thing).__mro__)


def _usage(verb: str) -> str:
    if verb not in ("fit", "evaluate", "predict"):
        return ""
    return f": stoker.{verb}(model, x) stands for model.{verb}(x)"


def must_keras_run(model: Model, verb: str) -> bool:
    """Return whether Keras must run it: eager steps, several replicas, state kept between batches, or its own function.

    A worker of a job has the whole model and predicts alone: Keras would wait for the other workers.
    """
    check_model(model, verb)
    if model.run_eagerly or tf.config.functions_run_eagerly():
        return True
    strategy = strategy_of(model)
    in_a_job = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    if tf.distribute.has_strategy() or (strategy is not None and not (in_a_job and verb == "predict")):
        return True
    if keras.distribution.distribution() is not None:
        return True
    # Their state fits batches of one size, and some versions of Keras cannot be traced for others.
    if any(isinstance(layer, keras.layers.RNN) and layer.stateful for layer in layers_of(model)):
        return True
    function = "predict_function" if verb == "predict" else "test_function"
    return is_own(model, f"make_{function}") or is_set_by_user(model, function)
