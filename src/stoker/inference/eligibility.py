"""Which models Keras has to run itself: what is asked for there cannot be had from one compiled loop."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf
from keras.src.trainers.trainer import Trainer

from stoker.errors import UsageError


class ModelTypeError(UsageError, TypeError):
    """What was given as a model is none that can be run here."""


def keras_must(model: Any, verb: str) -> bool:
    """Eager steps, several replicas, a state kept from batch to batch, or the model's own function for the verb.

    A worker of a job has the whole model, and predicts by itself: Keras would wait there for the other workers.
    """
    if not isinstance(model, Trainer):
        raise ModelTypeError(
            f"stoker.{verb} takes a keras.Model first, got {type(model).__name__}: "
            f"stoker.{verb}(model, x) stands for model.{verb}(x)"
        )
    if keras.config.backend() != "tensorflow":
        raise ModelTypeError(
            f"stoker.{verb} runs on TensorFlow, but Keras runs on {keras.config.backend()}: "
            "set KERAS_BACKEND=tensorflow"
        )
    if model.run_eagerly or tf.config.functions_run_eagerly():
        return True
    in_a_job = isinstance(model._distribute_strategy, tf.distribute.MultiWorkerMirroredStrategy)
    if tf.distribute.has_strategy() or (
        model._distribute_strategy is not None and not (in_a_job and verb == "predict")
    ):
        return True
    if keras.distribution.distribution() is not None:
        return True
    # Their state is of batches of one size, and some versions of Keras cannot be traced for others.
    if any(isinstance(layer, keras.layers.RNN) and layer.stateful for layer in model._flatten_layers()):
        return True
    # Not at the top: it can only be imported where Keras runs on TensorFlow.
    from keras.src.backend.tensorflow.trainer import TensorFlowTrainer

    maker = "make_predict_function" if verb == "predict" else "make_test_function"
    return getattr(type(model), maker) is not getattr(TensorFlowTrainer, maker) or maker in model.__dict__
