"""Weights of a model of `keras.applications` in a file, as a user has them where there is no network."""

from __future__ import annotations

import keras


def base_weights() -> str:
    """Those of a MobileNet for images of 32 by 32, as its first random ones are."""
    base = keras.applications.MobileNet(
        include_top=False, weights=None, input_shape=(32, 32, 3), pooling="avg"
    )
    base.save_weights("base.weights.h5")
    return "base.weights.h5"
