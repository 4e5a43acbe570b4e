"""A SavedModel as somebody else would write it, with a signature of each kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tensorflow as tf

_FEATURES = {"x": tf.io.FixedLenFeature([1], tf.float32)}


class Half(tf.Module):
    """Half of a number plus two, in many forms."""

    def __init__(self, plus: float = 2.0) -> None:
        super().__init__()
        self.plus = tf.Variable(plus)
        self.calls = tf.Variable(0, dtype=tf.int64)

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32, "x")])
    def predict(self, x: Any) -> Any:
        return {"y": x / 2 + self.plus}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def center(self, x: Any) -> Any:
        return {"y": x - tf.reduce_mean(x)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def reverse(self, text: Any) -> Any:
        return {"words_bytes": tf.strings.join([text, "!"]), "length": tf.strings.length(text)}

    @tf.function(input_signature=[])
    def count(self) -> Any:
        return {"calls": self.calls.assign_add(1)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.float32, "x")])
    def scalar(self, x: Any) -> Any:
        return {"y": x + 1}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def classify(self, inputs: Any) -> Any:
        x = tf.io.parse_example(inputs, _FEATURES)["x"]
        words = tf.repeat(tf.constant([["small", "large"]]), tf.shape(x)[0], axis=0)
        return {"scores": tf.concat([-x, x], 1), "classes": words}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "inputs")])
    def regress(self, inputs: Any) -> Any:
        return {"outputs": tf.io.parse_example(inputs, _FEATURES)["x"] / 2 + self.plus}


def save(place: Path, plus: float = 2.0) -> Path:
    """Save the model with all its signatures."""
    model = Half(plus)
    signatures = {
        "serving_default": model.predict, "center": model.center, "reverse": model.reverse, "count": model.count,
        "scalar": model.scalar, "classify": model.classify, "regress": model.regress,
    }  # fmt: skip
    tf.saved_model.save(model, str(place), signatures)
    return place


class Doubling(tf.Module):
    """Twice each number: a graph that answers tensors of any shape, whatever it declares."""

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, "x")])
    def pairs(self, x: Any) -> Any:
        return {"y": x * 2}

    @tf.function(input_signature=[tf.TensorSpec([3, None], tf.float32, "x")])
    def three(self, x: Any) -> Any:
        return {"y": x * 2}

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32, "x")])
    def anything(self, x: Any) -> Any:
        return {"y": x * 2}


def save_doubling(place: Path) -> Path:
    """Save a model that declares sizes which its graph does not need."""
    model = Doubling()
    signatures = {"serving_default": model.pairs, "three": model.three, "anything": model.anything}
    tf.saved_model.save(model, str(place), signatures)
    return place


class Reader(tf.Module):
    """A model that reads whatever file it is told to."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.string, "name")])
    def read(self, name: Any) -> Any:
        return {"content": tf.io.read_file(name)}


def save_reader(place: Path) -> Path:
    """Save a model that reaches outside."""
    model = Reader()
    tf.saved_model.save(model, str(place), {"serving_default": model.read})
    return place
