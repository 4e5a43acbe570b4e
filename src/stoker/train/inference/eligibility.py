"""Which models Keras has to run itself: what is asked for there cannot be had from one compiled loop."""

from __future__ import annotations

import keras
import tensorflow as tf

from stoker.tf_internals.keras_layers import layers_of
from stoker.tf_internals.keras_training import strategy_of
from stoker.tf_internals.types import Model
from stoker.train.execution.model_kinds import check_model
from stoker.train.execution.own_methods import is_own, is_set_by_user


def keras_must(model: Model, verb: str) -> bool:
    """Eager steps, several replicas, a state kept from batch to batch, or the model's own function for the verb.

    A worker of a job has the whole model, and predicts by itself: Keras would wait there for the other workers.
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
    # Their state is of batches of one size, and some versions of Keras cannot be traced for others.
    if any(isinstance(layer, keras.layers.RNN) and layer.stateful for layer in layers_of(model)):
        return True
    function = "predict_function" if verb == "predict" else "test_function"
    return is_own(model, f"make_{function}") or is_set_by_user(model, function)
