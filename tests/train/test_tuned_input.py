"""`stoker.fit(..., tune=True)`: the same training on a tuned pipeline."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError

pytestmark = pytest.mark.filterwarnings("ignore")


def model() -> Any:
    keras.utils.set_random_seed(3)
    made = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    made.compile("sgd", "mse")
    return made


def pipeline() -> Any:
    rows = np.random.default_rng(1).normal(size=(200, 4)).astype(np.float32)
    slices = tf.data.Dataset.from_tensor_slices((rows, rows[:, :1]))
    return slices.map(lambda x, y: (x / 2, y)).shuffle(50, seed=2).batch(20)


@pytest.mark.slow
def test_the_losses_are_the_same() -> None:
    plain = stoker.fit(model(), pipeline(), epochs=2, verbose=0)
    tuned = stoker.fit(model(), pipeline(), epochs=2, verbose=0, tune=True)
    assert tuned.history == plain.history
    assert tuned.plan.tuned
    assert any(reason.startswith("the input was ") for reason in tuned.plan.reasons)
    assert tuned.plan.figures["input_before_per_s"] > 0
    assert tuned.plan.figures["input_after_per_s"] > 0
    assert not plain.plan.tuned


def test_as_a_word_of_the_plan() -> None:
    with pytest.raises(ArgumentError, match=r"needs x to be a tf\.data\.Dataset, not ndarray"):
        stoker.fit(model(), np.ones((8, 4)), np.ones((8, 1)), plan="tuned, streamed")


def test_not_with_checkpoints(tmp_path: Any) -> None:
    with pytest.raises(ArgumentError, match="cannot be used with checkpoint="):
        stoker.fit(model(), pipeline(), tune=True, checkpoint=tmp_path / "run")
