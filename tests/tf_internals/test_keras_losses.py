"""What the losses of a compiled model divide by, and which metrics are sums over rows."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.tf_internals import keras_losses, keras_training
from stoker.tf_internals.keras_layers import set_mask
from stoker.tf_internals.keras_losses import LossTerm

X = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]])
WEIGHTS = tf.constant([1.0, 0.5, 2.0])


def model_of(*losses: Any) -> keras.Model:
    inputs = keras.Input((2,))
    outputs = {
        str(number): keras.layers.Dense(2, name=str(number))(inputs) for number, _ in enumerate(losses)
    }
    model = keras.Model(inputs, outputs)
    model.compile("sgd", {str(number): loss for number, loss in enumerate(losses)})
    return model


def terms_of(*losses: Any, weights: Any = None) -> tuple[keras.Model, list[LossTerm], Any]:
    model = model_of(*losses)
    labels = {str(number): X for number, _ in enumerate(losses)}
    batch = (X, labels, None if weights is None else dict.fromkeys(labels, weights))
    keras_training.build(model, batch)
    found: list[LossTerm] = []

    def note(number: int, term: LossTerm) -> Any:
        assert number == len(found)
        found.append(term)
        return 10.0 * term.value

    with keras_losses.losses_replaced(model, note):
        loss, _ = keras_training.forward(model, batch, training=True)
    return model, found, loss


def test_terms_are_replaced_and_their_trackers_see_nothing() -> None:
    model, found, loss = terms_of("mse", keras.losses.MeanAbsoluteError(reduction="sum"))
    assert keras_losses.term_count(model) == 2
    assert [one.is_sum for one in found] == [False, True]
    assert [one.divisor for one in found] == [None, None]
    assert float(loss) == pytest.approx(10 * sum(float(one.value) for one in found))
    trackers = keras_losses.term_trackers(model)
    assert [one.name for one in trackers] == ["0_loss", "1_loss"]
    assert [float(one.result()) for one in trackers] == [0.0, 0.0]
    # Outside of the context all is as it was.
    plain, _ = keras_training.forward(model, (X, {"0": X, "1": X}), training=True)
    assert float(plain) == pytest.approx(float(loss) / 10)
    assert all(float(one.result()) > 0 for one in trackers)


def test_a_loss_by_sample_weights_divides_by_their_sum() -> None:
    by_weights = keras.losses.MeanSquaredError(reduction="mean_with_sample_weight")
    _, found, _ = terms_of(by_weights, "mse", weights=WEIGHTS)
    assert float(found[0].divisor) == pytest.approx(3.5)
    assert found[1].divisor is None


def test_a_mask_of_the_labels_counts_those_that_are_left() -> None:
    loss = keras.losses.SparseCategoricalCrossentropy(ignore_class=0)
    predicted = tf.nn.softmax(tf.random.normal([3, 4, 5]))
    labels = tf.constant([[1, 0, 2, 0], [0, 0, 0, 0], [4, 4, 4, 0]])
    assert float(keras_losses.find_term(loss, labels, predicted).divisor) == 5


@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "mean_with_sample_weight"])
def test_a_mask_of_the_predictions_is_counted_as_keras_counts_it(reduction: str) -> None:
    loss = keras.losses.MeanSquaredError(reduction=reduction)
    predicted, labels = tf.random.normal([3, 4, 2]), tf.zeros([3, 4, 2])
    mask = tf.constant([[True, True, False, False]] * 2 + [[True] * 4])
    set_mask(predicted, mask)
    weights = tf.constant(np.random.default_rng(0).uniform(size=(3, 4)).astype("float32"))
    for given in (None, weights):
        term = keras_losses.find_term(loss, labels, predicted, given)
        each = tf.reduce_mean(predicted**2, -1) * tf.cast(mask, tf.float32)
        total = tf.reduce_sum(each if given is None else each * given)
        assert float(term.value) == pytest.approx(float(total) / float(term.divisor), rel=1e-5)


def test_a_loss_with_a_call_of_its_own_is_a_mean_over_rows() -> None:
    class Own(keras.losses.Loss):
        def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
            return tf.reduce_mean(y_pred)

    assert keras_losses.find_term(Own(), X, X) == LossTerm(float(tf.reduce_mean(X)))


def test_adds_up_activities_says_what_a_layer_does() -> None:
    layer = keras.layers.Dense(2, activity_regularizer=tf.reduce_sum, kernel_initializer="ones")
    layer(tf.ones([4, 3]))
    whole = 4 * 2 * 3.0
    assert float(layer.losses[0]) == (whole if keras_losses.adds_up_activities() else whole / 4)


def test_metrics_of_keras_are_sums_over_rows_and_others_are_not_known_to_be() -> None:
    class Own(keras.metrics.MeanMetricWrapper):
        pass

    def own(y: Any, predicted: Any) -> Any:
        return tf.reduce_max(predicted)

    model = model_of("mse")
    metrics = ["mae", keras.metrics.AUC(), keras.metrics.R2Score(), own, Own(keras.losses.mean_squared_error)]
    model.compile("sgd", "mse", metrics=[metrics])
    assert keras_losses.compiled_metrics(model) == []
    keras_training.build(model, (X, {"0": X}))
    found = keras_losses.compiled_metrics(model)
    assert [keras_losses.is_sum_over_rows(one) for one in found] == [True, True, True, False, False]
