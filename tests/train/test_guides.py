"""Whole programs in the style of Keras' guides end with the same bits, but for the order of a shuffle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import stoker

Fit = Callable[..., Any]
ROWS = 60
RANDOM = np.random.default_rng(5)
IMAGES = RANDOM.random((ROWS, 12, 12, 3)).astype("float32")
CLASSES = RANDOM.integers(0, 2, ROWS)
WORDS = RANDOM.integers(0, 50, (ROWS, 7))
LOSS = keras.losses.BinaryCrossentropy(from_logits=True)


def transfer_learning(fit: Fit, shuffle: bool) -> Any:
    """A frozen base under a new head, on images augmented in the pipeline; then all of it, at a low rate."""
    augment = keras.Sequential([layers.RandomFlip("horizontal"), layers.RandomRotation(0.1)])
    rows = tf.data.Dataset.from_tensor_slices((IMAGES, CLASSES))
    rows = rows.shuffle(ROWS) if shuffle else rows
    train = rows.map(lambda x, y: (augment(x, training=True), y)).batch(16).prefetch(2)
    validation = tf.data.Dataset.from_tensor_slices((IMAGES[:20], CLASSES[:20])).batch(16)

    base = keras.Sequential([keras.Input((12, 12, 3)), layers.Conv2D(4, 3), layers.BatchNormalization()])
    base.trainable = False
    image = keras.Input((12, 12, 3))
    x = base(layers.Rescaling(2.0, offset=-1.0)(image), training=False)
    x = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(x))
    model = keras.Model(image, layers.Dense(1)(x))
    for rate, epochs in ((1e-2, 2), (1e-4, 1)):
        model.compile(keras.optimizers.Adam(rate), LOSS, metrics=["binary_accuracy"])
        fit(model, train, epochs=epochs, validation_data=validation, verbose=0)
        base.trainable = True
    return model


def functional(fit: Fit, shuffle: bool) -> Any:
    """Two inputs, a residual block, two outputs with losses of different weight, a part held out."""
    image, words = keras.Input((12, 12, 3), name="image"), keras.Input((None,), name="words")
    x = first = layers.Conv2D(4, 3, padding="same", activation="relu")(image)
    x = layers.add([layers.Conv2D(4, 3, padding="same")(x), first])
    x = layers.concatenate(
        [layers.GlobalAveragePooling2D()(x), layers.LSTM(6)(layers.Embedding(50, 4)(words))]
    )
    x = layers.Dropout(0.5)(x)
    outputs = {"kind": layers.Dense(1, name="kind")(x), "size": layers.Dense(1, name="size")(x)}
    model = keras.Model([image, words], outputs)
    model.compile("rmsprop", {"kind": LOSS, "size": "mse"}, loss_weights={"kind": 1.0, "size": 0.2})
    targets = {"kind": CLASSES[:, None], "size": IMAGES.mean((1, 2, 3))[:, None]}
    given = {"image": IMAGES, "words": WORDS}
    fit(model, given, targets, batch_size=16, epochs=2, validation_split=0.2, shuffle=shuffle, verbose=0)
    return model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:`shuffle=True` was passed")
@pytest.mark.parametrize("guide", [transfer_learning, functional])
def test_a_guide_ends_with_the_same_bits_but_for_the_order_of_a_shuffle(guide: Any) -> None:
    def trained(fit: Fit, shuffle: bool) -> list[Any]:
        keras.utils.set_random_seed(7)
        weights: list[Any] = guide(fit, shuffle).get_weights()
        return weights

    def by_keras(model: Any, *args: Any, **options: Any) -> Any:
        return model.fit(*args, **options)

    def in_keras_ops(*args: Any, **options: Any) -> Any:
        return stoker.fit(*args, plan="unfused", **options)

    pairs = zip(trained(by_keras, False), trained(in_keras_ops, False), strict=True)
    for theirs, ours in pairs:
        np.testing.assert_array_equal(ours, theirs)
    shuffled = zip(trained(by_keras, True), trained(stoker.fit, True), strict=True)
    assert any(np.any(theirs != ours) for theirs, ours in shuffled)
