"""The gradient penalty of WGAN-GP (Gulrajani et al., 2017)."""

from __future__ import annotations

from collections.abc import Callable

import keras
import tensorflow as tf

from stoker.tf_internals.types import SeedGenerator, Tensor


def gradient_penalty(
    critic: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor, *, seed: SeedGenerator
) -> Tensor:
    """Return the mean over rows of (|d critic / d x| - 1)^2, at points between real and fake rows.

    `seed` draws the points: a `keras.random.SeedGenerator`, such as the trainer's own `self.random`, which checkpoints
    keep. The tape that differentiates the loss must be open.
    """
    real, fake = tf.convert_to_tensor(real), tf.convert_to_tensor(fake)
    shape = [tf.shape(real)[0], *[1] * (real.shape.rank - 1)]
    share = keras.random.uniform(shape, dtype=real.dtype.name, seed=seed)
    points = share * real + (1 - share) * fake
    with tf.GradientTape() as tape:
        tape.watch(points)
        scores = critic(points)
    slopes = tape.gradient(scores, points)
    rows = tf.reshape(tf.cast(slopes, tf.float32), [tf.shape(slopes)[0], -1])
    # The slope of the square root at 0 is infinite: a dead critic would make the loss NaN.
    norms = tf.sqrt(tf.reduce_sum(tf.square(rows), axis=1) + 1e-12)
    return tf.reduce_mean(tf.square(norms - 1))
