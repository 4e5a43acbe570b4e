"""Small models as people write them, for comparing `stoker.fit` with Keras' own `fit`."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf

L = keras.layers
ROWS, WIDTH, CLASSES = 48, 4, 3


def data(rows: int = ROWS, seed: int = 0) -> tuple[Any, Any]:
    """Rows of floats, and their classes."""
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, WIDTH)).astype("float32"), random.integers(0, CLASSES, rows)


def dense(*middle: Any, **compiled: Any) -> Any:
    """A dense layer behind what is asked for, compiled with SGD unless said otherwise."""
    model = keras.Sequential([L.Input((WIDTH,)), *middle, L.Dense(CLASSES, activation="softmax")])
    return compiled_(model, **compiled)


def compiled_(model: Any, **compiled: Any) -> Any:
    options = {
        "optimizer": keras.optimizers.SGD(0.1),
        "loss": "sparse_categorical_crossentropy",
        "metrics": ["accuracy"],
    }
    model.compile(**{**options, **compiled})
    return model


def two_in_two_out() -> Any:
    left, right = L.Input((WIDTH,), name="left"), L.Input((WIDTH,), name="right")
    joined = L.Concatenate()([L.Dense(4)(left), L.Dense(4)(right)])
    outputs = {
        "kind": L.Dense(CLASSES, activation="softmax", name="kind")(joined),
        "size": L.Dense(1, name="size")(joined),
    }
    model = keras.Model({"left": left, "right": right}, outputs)
    model.compile(
        "adam",
        loss={"kind": "sparse_categorical_crossentropy", "size": "mse"},
        loss_weights={"kind": 1.0, "size": 0.5},
        metrics={"kind": ["accuracy"], "size": ["mae"]},
    )
    return model


def list_in_list_out() -> Any:
    one, two = L.Input((WIDTH,)), L.Input((WIDTH,))
    joined = L.Concatenate()([one, two])
    model = keras.Model([one, two], [L.Dense(1, name="a")(joined), L.Dense(1, name="b")(joined)])
    model.compile("sgd", loss=["mse", "mae"])
    return model


class OwnStep(keras.Model):
    """A `train_step` with a tape of its own, whose logs are not the model's metrics."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = L.Dense(6, activation="tanh")
        self.out = L.Dense(CLASSES)

    def call(self, x: Any) -> Any:
        return self.out(self.hidden(x))

    def train_step(self, batch: Any) -> dict[str, Any]:
        x, y = batch
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"raw_loss": loss, "norm": tf.linalg.global_norm(gradients)}


class OwnMetrics(OwnStep):
    """Own steps for training and testing, with a metric of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = keras.metrics.Mean(name="mean_loss")

    @property
    def metrics(self) -> list[Any]:
        return [self.mean]

    def train_step(self, batch: Any) -> dict[str, Any]:
        self.mean.update_state(super().train_step(batch)["raw_loss"])
        return {"mean_loss": self.mean.result()}

    def test_step(self, batch: Any) -> dict[str, Any]:
        x, y = batch
        logits = self(x, training=False)
        self.mean.update_state(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        return {"mean_loss": self.mean.result()}


class OwnLoss(keras.Model):
    """An overridden `compute_loss`."""

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> Any:
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        return loss + 0.01 * keras.ops.sum(y_pred**2)


def own_loss() -> Any:
    inputs = L.Input((WIDTH,))
    return compiled_(OwnLoss(inputs, L.Dense(CLASSES, activation="softmax")(inputs)))


def autoencoder() -> Any:
    """No targets: the loss is added by a layer."""

    class Reconstruct(keras.layers.Layer):
        def call(self, pair: Any) -> Any:
            self.add_loss(keras.ops.mean((pair[0] - pair[1]) ** 2))
            return pair[1]

    inputs = L.Input((WIDTH,))
    model = keras.Model(inputs, Reconstruct()([inputs, L.Dense(WIDTH)(L.Dense(2)(inputs))]))
    model.compile("adam")
    return model


def text() -> Any:
    words = L.TextVectorization(max_tokens=20, output_sequence_length=4)
    words.adapt(["red green blue", "one two three"])
    model = keras.Sequential(
        [
            L.Input((1,), dtype="string"),
            words,
            L.Embedding(20, 4),
            L.Flatten(),
            L.Dense(CLASSES, activation="softmax"),
        ]
    )
    return compiled_(model)


def frozen() -> Any:
    model = dense(L.Dense(5))
    model.layers[0].trainable = False
    return compiled_(model)


def mixed(policy: str) -> Any:
    keras.mixed_precision.set_global_policy(policy)
    try:
        return dense()
    finally:
        keras.mixed_precision.set_global_policy("float32")
