"""The last layers of a Keras model that stands for a model of scikit-learn, or for a mix of several models."""

from __future__ import annotations

from collections.abc import Sequence

import keras
from keras import ops

from stoker.tf_internals.types import Model, Nest, Tensor


def final_answer(margins: Tensor, classes: int) -> Tensor:
    """Turn the sums of a model into probabilities, or into a number.

    Args:
        margins: the sums, [rows, 1] for numbers and for two classes, otherwise [rows, classes].
        classes: the number of classes; 0 for numbers.
    """
    if not classes:
        return _name_number(margins)
    if classes == 2:
        # With two classes there is one number: half of it counts for the second class, and half against the first.
        half = ops.multiply(margins, 0.5)
        margins = keras.layers.Concatenate(dtype="float64", name="logits")([ops.negative(half), half])
    return keras.layers.Softmax(name="probabilities")(ops.cast(margins, "float32"))


def _name_number(found: Tensor) -> Tensor:
    return keras.layers.Activation("linear", name="prediction")(ops.cast(found, "float32"))


def mix(models: Sequence[Model], weights: Sequence[float], inputs: Nest, classes: int) -> Model:
    """Return one model whose answers are the weighted mean of the answers of several."""
    answers = [ops.multiply(model(inputs), weight) for model, weight in zip(models, weights, strict=True)]
    total = keras.layers.Add(name="weights")(answers)
    if not classes:
        return keras.Model(inputs, _name_number(total))
    # The softmax of the logarithms of probabilities is these probabilities, so the model ends as a classifier does.
    logits = ops.log(ops.maximum(total, keras.config.epsilon() ** 2))
    return keras.Model(inputs, keras.layers.Softmax(name="probabilities")(logits))
