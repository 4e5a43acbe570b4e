"""The outputs of a bundle: the model's own, by name, and a label with scores if its classes have names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import keras
import numpy as np
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.serve.export import names
from stoker.serve.signature import Array
from stoker.tf_internals.keras_layers import maker_of, output_structure, takes_logits
from stoker.tf_internals.types import Layer, Nest, Tensor
from stoker.units import quantity

_PROBABILITIES = {"softmax", "sigmoid", "hard_sigmoid"}


def output_names(model: keras.Model, outputs: Nest) -> list[str]:
    """Return the names of the model's outputs, in the order of `flatten`."""
    leaves = names.leaves_of(outputs)
    if isinstance(outputs, Mapping) and len(outputs) == len(leaves):
        return sorted(outputs)
    tensors = _output_tensors(model)
    if len(tensors) == len(leaves):
        return names.choose_names(tensors, "output")
    return names.number_names(len(leaves), "output")


def _output_tensors(model: keras.Model) -> list[Tensor]:
    if isinstance(model, keras.Sequential):
        return list(model.outputs)
    return names.leaves_of(output_structure(model))


class Labels:
    """The names of the classes, and how to pick the right one from the model's only output."""

    def __init__(self, words: Sequence[object], width: int, logits: bool) -> None:
        self.words = [str(word) for word in words]
        self.single, self.logits = width == 1 and len(words) == 2, logits

    @property
    def are_output(self) -> bool:
        """Whether the model's own output is the scores of all classes, unchanged."""
        return not self.single and not self.logits

    def tensors(self, output: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the label and the scores of all classes, in a graph."""
        scores = output
        if self.single:
            yes = tf.reshape(tf.sigmoid(output) if self.logits else output, [-1, 1])
            scores = tf.concat([1 - yes, yes], -1)
        elif self.logits:
            scores = tf.nn.softmax(output)
        return tf.gather(tf.constant(self.words), tf.argmax(scores, -1)), scores

    def arrays(self, output: Array) -> tuple[Array, Array]:
        """Compute the same with NumPy, for the answers that the bundle has to reproduce."""
        scores = np.asarray(output, np.float64)
        if self.single:
            scores = scores.reshape(-1, 1)
            yes = 1 / (1 + np.exp(-scores)) if self.logits else scores
            scores = np.concatenate([1 - yes, yes], -1)
        elif self.logits:
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            scores /= scores.sum(-1, keepdims=True)
        words = np.array([word.encode("utf-8") for word in self.words], dtype=object)
        return words[scores.argmax(-1)], scores.astype(np.float32)


def labels_for(
    model: keras.Model,
    words: Sequence[object] | None,
    shapes: Mapping[str, tuple[int | None, ...]],
    demanded: bool,
) -> Labels | None:
    """Find out how to make labels from these outputs, if that is possible.

    Args:
        model: the model; its last layer tells whether it gives logits.
        words: the names of the classes.
        shapes: the shape of one row of each output.
        demanded: whether labels were given with the call, so that labels which do not fit are an error.

    Raises:
        ArgumentError: demanded labels do not fit, or it is unclear whether the output is logits.
    """
    if words is None:
        return None
    ((name, shape),) = shapes.items() if len(shapes) == 1 else (("", ()),)
    width = 1 if shape == () and name else shape[-1] if len(shape) == 1 else None
    if width != len(words) and not (width == 1 and len(words) == 2):
        if not demanded:
            return None
        given = f"a row of {name!r} has shape {list(shape)}" if name else f"there are {len(shapes)} outputs"
        raise ArgumentError(f"labels: {quantity(len(words), 'name')}, but {given}")
    return Labels(words, width or 1, _gives_logits(model))


def _gives_logits(model: keras.Model) -> bool:
    layer = _last_layer(model)
    if isinstance(layer, keras.layers.Softmax):
        return False
    activation = getattr(layer, "activation", None)
    if activation is not None:
        return getattr(activation, "__name__", "") not in _PROBABILITIES
    from_logits = takes_logits(getattr(model, "loss", None))
    if from_logits is not None:
        return from_logits
    raise ArgumentError(
        f"labels: cannot tell whether {getattr(layer, 'name', 'the model')!r} gives logits or probabilities; "
        "end the model with a softmax or sigmoid, or compile it with a loss that says from_logits"
    )


def _last_layer(model: keras.Model) -> Layer | None:
    """Return the operation that makes the only output; look inside nested models, too."""
    tensors = _output_tensors(model)
    if len(tensors) != 1:
        return None
    layer = maker_of(tensors[0])
    return _last_layer(layer) if isinstance(layer, keras.Model) else layer
