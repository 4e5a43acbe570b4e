"""Keras optimizers."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.tf_internals import keras_optimizers
from tests.tf_internals.calls import recorded


def built(optimizer: Any) -> tuple[Any, list[Any]]:
    variables = [keras.Variable([1.0, 2.0]), keras.Variable([[3.0]])]
    optimizer.build(variables)
    return optimizer, variables


def test_application_is_passed_by_every_way_to_apply() -> None:
    optimizer, variables = built(keras.optimizers.SGD())
    gradients = [tf.zeros_like(one) for one in variables]
    with recorded(keras_optimizers.application()) as calls:
        optimizer.apply(gradients)
        optimizer.apply_gradients(list(zip(gradients, variables, strict=True)))
        keras.optimizers.LossScaleOptimizer(optimizer).apply(gradients, variables)
    assert sum(args[0] is optimizer for args in calls) >= 2


def test_trained_variables() -> None:
    optimizer, variables = built(keras.optimizers.SGD())
    assert [
        one is other
        for one, other in zip(keras_optimizers.trained_variables(optimizer), variables, strict=True)
    ]
    assert len(keras_optimizers.trained_variables(optimizer)) == 2


def test_slots_of_adam_are_its_averages() -> None:
    optimizer, (first, second) = built(keras.optimizers.Adam(beta_1=0.5, beta_2=0.75))
    optimizer.apply([tf.constant([1.0, 2.0]), tf.constant([[4.0]])])
    m, v = keras_optimizers.slots_of_adam(optimizer, second)
    assert (float(m.value[0, 0]), float(v.value[0, 0])) == (2.0, 4.0)
    assert [tuple(one.shape) for one in keras_optimizers.slots_of_adam(optimizer, first)] == [(2,), (2,)]


@pytest.mark.parametrize(("name", "slots"), [("Adam", 2), ("SGD", 0), ("RMSprop", 1), ("Adafactor", 2)])
def test_slots_of_any_optimizer_are_found_by_name(name: str, slots: int) -> None:
    optimizer, (first, second) = built(getattr(keras.optimizers, name)())
    # Adafactor keeps sums of rows and columns, of another shape than a matrix.
    assert len(keras_optimizers.slots_of(optimizer, first)) == slots - (name == "Adafactor")
    assert all(one.shape == second.shape for one in keras_optimizers.slots_of(optimizer, second))


def test_bytes_of_a_variable() -> None:
    assert keras_optimizers.bytes_of(keras.Variable([[1.0, 2.0, 3.0]])) == 12
    assert keras_optimizers.bytes_of(keras.Variable(1, dtype="int64")) == 8


def test_average_of_a_variable() -> None:
    optimizer, (first, _) = built(keras.optimizers.SGD(use_ema=True))
    assert tuple(keras_optimizers.average_of(optimizer, first).shape) == (2,)


@pytest.mark.parametrize(
    ("options", "expected"),
    [({"clipvalue": 1.0}, [1.0, 1.0]), ({"global_clipnorm": 1.0}, [0.6, 0.8]), ({}, [3, 4])],
)
def test_clip(options: dict[str, float], expected: list[float]) -> None:
    optimizer, _ = built(keras.optimizers.SGD(**options))
    (clipped,) = keras_optimizers.clip(optimizer, [tf.constant([3.0, 4.0])])
    np.testing.assert_allclose(clipped, expected, rtol=1e-6)


def test_update_all_and_none() -> None:
    optimizer, (first, second) = built(keras.optimizers.SGD())
    keras_optimizers.update_all(optimizer, [tf.constant([1.0, 1.0])], [first], 0.5)
    assert first.numpy().tolist() == [0.5, 1.5]
    keras_optimizers.update_all(optimizer, [], [], 0.5)
    assert second.numpy().tolist() == [[3.0]]


def test_update_all_of_nadam_multiplies_once_a_step() -> None:
    """With no variables: what an optimizer does for all of them together."""
    optimizer, _ = built(keras.optimizers.Nadam())
    keras_optimizers.update_all(optimizer, [], [], 0.5)
    assert float(optimizer._u_product) < 1


def test_update_replaced_for_a_while() -> None:
    optimizer, variables = built(keras.optimizers.SGD(0.5))
    seen: list[Any] = []

    def make(plain: keras_optimizers.Update) -> keras_optimizers.Update:
        def update(gradients: Any, given: Any, rate: Any) -> None:
            seen.append((len(gradients), [one.shape for one in given], float(rate)))
            plain(gradients, given, rate)

        return update

    gradients = [tf.ones_like(one) for one in variables]
    with keras_optimizers.update_replaced(optimizer, make):
        optimizer.apply(gradients)
    optimizer.apply(gradients)
    assert seen == [(2, [(2,), (1, 1)], 0.5)]
    assert variables[1].numpy().tolist() == [[2.0]]


def test_decays_unless_excluded() -> None:
    optimizer, (first, second) = built(keras.optimizers.AdamW(weight_decay=0.1))
    optimizer.exclude_from_weight_decay([second])
    assert keras_optimizers.decays(optimizer, first)
    assert not keras_optimizers.decays(optimizer, second)


def test_muon_leaves_vectors_to_adam() -> None:
    optimizer, (vector, matrix) = built(keras.optimizers.Muon())
    assert keras_optimizers.is_left_to_adam(optimizer, vector)
    assert not keras_optimizers.is_left_to_adam(optimizer, matrix)


def test_an_optimizer_passes_where_it_is_made() -> None:
    """`variable_tracking` and `optimizer_type`."""
    with recorded(keras_optimizers.variable_tracking()) as calls:
        made = keras.optimizers.Adam()
    assert calls
    assert all(call[0] is made for call in calls)
    assert isinstance(made, keras_optimizers.optimizer_type())
