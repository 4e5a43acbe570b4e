"""Each option of the trainer against the same thing written out with a GradientTape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from tests.train import plain

Optimizer = Callable[[], Any]


def fitted(optimizer: Any, net: Any = None, rows: int = plain.ROWS, **options: Any) -> list[Any]:
    """The weights after two epochs of the trainer."""
    net = net or plain.model()
    fit(stoker.Trainer(net, optimizer, plain.squared, **options), rows=rows)
    return plain.weights(net)


def fit(trainer: stoker.Trainer, epochs: int = 2, rows: int = plain.ROWS, **arguments: Any) -> Any:
    return trainer.fit(
        *plain.data(rows), batch_size=plain.BATCH, epochs=epochs, shuffle=False, verbose=0, **arguments
    )


def test_the_old_name_of_the_state_of_updates_warns() -> None:
    trainer = stoker.Trainer(plain.model(), keras.optimizers.SGD(0.1), plain.squared)
    fit(trainer, epochs=1)
    with pytest.warns(DeprecationWarning, match=r"Trainer\.workings .* use Trainer\.update_state") as caught:
        found = trainer.workings
    assert found is trainer.update_state
    assert caught[0].filename == __file__


OPTIMIZERS: dict[str, Optimizer] = {
    "sgd": lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "adamw": lambda: keras.optimizers.AdamW(0.02, weight_decay=0.1),
    "nadam": lambda: keras.optimizers.Nadam(0.02),
    "schedule": lambda: keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.05, 3, 0.5)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_without_options_it_is_the_plain_loop(name: str) -> None:
    make = OPTIMIZERS[name]
    plain.assert_same(fitted(make()), plain.train(plain.model(), make()))


def test_constraints_are_kept() -> None:
    bound = {"kernel_constraint": keras.constraints.MaxNorm(0.5)}
    expected = plain.train(plain.model(**bound), keras.optimizers.SGD(0.1))
    assert np.linalg.norm(expected[0], axis=0).max() < 0.5001
    plain.assert_same(fitted(keras.optimizers.SGD(0.1), plain.model(**bound)), expected)


def test_a_way_to_minimize_of_ones_own_is_used() -> None:
    class Doubled(stoker.Trainer):
        def minimize(self, tape: Any, loss: Any, part: str = "model") -> None:
            self.apply([2 * one for one in self.gradients(tape, loss, part)], loss, part)

    net = plain.model()
    fit(Doubled(net, keras.optimizers.SGD(0.1), plain.squared))
    plain.assert_same(plain.weights(net), plain.train(plain.model(), keras.optimizers.SGD(0.2)))


def test_the_history_holds_the_means_over_the_rows() -> None:
    history = fit(stoker.Trainer(plain.model(), keras.optimizers.SGD(0.0), plain.squared), 1, plain.UNEVEN)
    x, y = plain.data(plain.UNEVEN)
    assert history.history["loss"][0] == pytest.approx(float(plain.squared(plain.model(), (x, y))), rel=1e-5)


CLIPS: dict[str, tuple[stoker.Clip, Callable[[list[Any]], Any]]] = {
    "value": (stoker.Clip(value=0.1), lambda g: [tf.clip_by_value(one, -0.1, 0.1) for one in g]),
    "norm": (stoker.Clip(norm=0.3), lambda g: [tf.clip_by_norm(one, 0.3) for one in g]),
    "global norm": (stoker.Clip(global_norm=0.3), lambda g: tf.clip_by_global_norm(g, 0.3)[0]),
}


@pytest.mark.parametrize("kind", CLIPS)
def test_clipping(kind: str) -> None:
    clip, by_hand = CLIPS[kind]
    expected = plain.train(plain.model(), keras.optimizers.SGD(0.1), by_hand)
    plain.assert_same(fitted(keras.optimizers.SGD(0.1), clip=clip), expected)
    unclipped = plain.train(plain.model(), keras.optimizers.SGD(0.1))
    assert not np.allclose(unclipped[0], expected[0], atol=1e-2)


def test_an_optimizers_own_clipping_is_kept() -> None:
    expected = plain.train(plain.model(), keras.optimizers.SGD(0.1), CLIPS["global norm"][1])
    plain.assert_same(fitted(keras.optimizers.SGD(0.1, global_clipnorm=0.3)), expected)


def test_the_norm_of_an_embeddings_gradient_adds_rows_that_occur_twice() -> None:
    def embedding() -> Any:
        keras.utils.set_random_seed(3)
        return keras.Sequential([keras.Input((2,)), keras.layers.Embedding(5, 2), keras.layers.Flatten()])

    def step(net: Any, batch: Any) -> Any:
        return tf.reduce_sum(net(batch)) * 3.0

    rows = np.array([[1, 1], [1, 2]])
    net = embedding()
    trainer = stoker.Trainer(net, keras.optimizers.SGD(1.0), step, clip=stoker.Clip(norm=1.0))
    trainer.fit(rows, batch_size=2, verbose=0, shuffle=False)
    slope = np.zeros((5, 2))
    slope[1], slope[2] = 9.0, 3.0
    moved = embedding().weights[0].numpy() - net.weights[0].numpy()
    np.testing.assert_allclose(moved, slope / np.linalg.norm(slope), rtol=1e-5)


def test_rates_by_name_pattern() -> None:
    schedule = keras.optimizers.schedules.ExponentialDecay(0.05, 2, 0.5)
    net = plain.model()
    encoder, head = keras.optimizers.Adam(0.002), keras.optimizers.Adam(schedule)
    for batch in plain.batches(*plain.data()):
        slopes = plain.gradients(net, batch)
        encoder.apply(slopes[:2], net.trainable_variables[:2])
        head.apply(slopes[2:], net.trainable_variables[2:])
    rates = {"encoder/*": stoker.Times(0.1), "head": schedule}
    plain.assert_same(fitted(keras.optimizers.Adam(0.02), rates=rates), plain.weights(net))


def test_a_rate_scales_weight_decay_too() -> None:
    net = plain.model()
    encoder = keras.optimizers.AdamW(0.002, weight_decay=0.5)
    head = keras.optimizers.AdamW(0.02, weight_decay=0.5)
    for batch in plain.batches(*plain.data()):
        slopes = plain.gradients(net, batch)
        encoder.apply(slopes[:2], net.trainable_variables[:2])
        head.apply(slopes[2:], net.trainable_variables[2:])
    found = fitted(keras.optimizers.AdamW(0.02, weight_decay=0.5), rates={"encoder": 0.002})
    plain.assert_same(found, plain.weights(net))


FROZEN: dict[str, tuple[Any, Callable[[int], bool]]] = {
    "for good": ("encoder", lambda step: True),
    "until an update": ({"encoder": 3}, lambda step: step < 3),
    "during updates": (
        {"encoder/kernel": range(2, 5), "encoder/bias": range(2, 5)},
        lambda step: 2 <= step < 5,
    ),
}


@pytest.mark.parametrize("kind", FROZEN)
def test_freezing(kind: str) -> None:
    freeze, frozen = FROZEN[kind]
    net, optimizer = plain.model(), keras.optimizers.Adam(0.02)
    optimizer.build(net.trainable_variables)
    for step, batch in enumerate(plain.batches(*plain.data())):
        first = 2 if frozen(step) else 0
        slopes = tf.clip_by_global_norm(plain.gradients(net, batch)[first:], 0.3)[0]
        optimizer.apply(slopes, net.trainable_variables[first:])
    found = fitted(keras.optimizers.Adam(0.02), freeze=freeze, clip=stoker.Clip(global_norm=0.3))
    plain.assert_same(found, plain.weights(net))


def test_accumulation_is_the_large_batch() -> None:
    expected = plain.train(
        plain.model(), keras.optimizers.Adam(0.02), size=3 * plain.BATCH, rows=plain.UNEVEN
    )
    plain.assert_same(fitted(keras.optimizers.Adam(0.02), rows=plain.UNEVEN, accumulate=3), expected)


def test_accumulation_clips_what_was_added_up() -> None:
    expected = plain.train(plain.model(), keras.optimizers.SGD(0.1), CLIPS["global norm"][1], size=16)
    plain.assert_same(
        fitted(keras.optimizers.SGD(0.1), accumulate=2, clip=stoker.Clip(global_norm=0.3)), expected
    )


def test_average_of_the_weights() -> None:
    net, optimizer = plain.model(), keras.optimizers.SGD(0.1)
    averages = plain.weights(net)
    for batch in plain.batches(*plain.data()):
        optimizer.apply(plain.gradients(net, batch), net.trainable_variables)
        averages = [0.9 * old + 0.1 * new for old, new in zip(averages, plain.weights(net), strict=True)]
    trainer = stoker.Trainer(plain.model(), keras.optimizers.SGD(0.1), plain.squared, ema=0.9)
    history = fit(trainer, validation_data=plain.data())
    before = plain.weights(trainer.model)
    plain.assert_same(before, plain.weights(net))
    with trainer.averaged_weights():
        plain.assert_same(plain.weights(trainer.model), averages)
        with_averages = float(plain.squared(trainer.model, plain.data()))
    assert all((old == new).all() for old, new in zip(before, plain.weights(trainer.model), strict=True))
    assert history.history["val_loss"][-1] == pytest.approx(with_averages, rel=1e-5)


def test_average_with_warmup() -> None:
    net, optimizer = plain.model(), keras.optimizers.SGD(0.1)
    averages = plain.weights(net)
    for made, batch in enumerate(plain.batches(*plain.data())):
        decay = min(0.5, (1 + made) / (10 + made))
        optimizer.apply(plain.gradients(net, batch), net.trainable_variables)
        averages = [
            decay * old + (1 - decay) * new for old, new in zip(averages, plain.weights(net), strict=True)
        ]
    trainer = stoker.Trainer(
        plain.model(), keras.optimizers.SGD(0.1), plain.squared, ema=stoker.EMA(0.5, warmup=True)
    )
    fit(trainer)
    with trainer.averaged_weights():
        plain.assert_same(plain.weights(trainer.model), averages)


def test_metrics_of_a_step_and_keras_metrics() -> None:
    error = keras.metrics.MeanAbsoluteError(name="mae")

    def step(net: Any, batch: Any) -> Any:
        x, y = batch
        guess = net(x, training=True)
        error.update_state(y, guess)
        return tf.square(y - guess), {"largest": tf.reduce_max(guess)}

    net = plain.model()
    history = fit(stoker.Trainer(net, keras.optimizers.SGD(0.0), step, metrics=[error]), epochs=1).history
    x, y = plain.data()
    guess = plain.model()(x).numpy()
    assert history["mae"][0] == pytest.approx(np.abs(y - guess).mean(), rel=1e-5)
    largest = [guess[i : i + 8].max() for i in range(0, 24, 8)]
    assert history["largest"][0] == pytest.approx(np.mean(largest), rel=1e-5)


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "pattern": ({"rates": {"encodr": 0.1}}, "no trainable variable matches 'encodr'"),
    "rate": ({"rates": {"head": "fast"}}, r"rates\['head'\] = 'fast'"),
    "span": ({"freeze": {"head": -1}}, r"freeze\['head'\] = -1"),
    "losses": ({"losses": {"a": 1.0}}, r"losses names \['a'\], but the step returns \['loss'\]"),
    "accumulate": ({"accumulate": 0}, "accumulate=0"),
    "average": ({"ema": 1}, r"EMA\(decay=1\): it must lie between 0 and 1"),
    "two clips": ({"clip": stoker.Clip(value=1.0)}, "leave one out"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_makes_no_sense_is_said_in_one_line(kind: str) -> None:
    options, message = WRONG[kind]
    with pytest.raises(ArgumentError, match=message) as caught:
        fitted(keras.optimizers.SGD(0.1, clipnorm=1.0), **options)
    assert "\n" not in str(caught.value)


def test_optimizers_that_do_the_trainers_work_are_refused() -> None:
    with pytest.raises(ArgumentError, match="accumulate=4 instead"):
        fitted(keras.optimizers.SGD(gradient_accumulation_steps=4))
    with pytest.raises(ArgumentError, match="replica 0 only"):
        fitted(keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD()))
    with pytest.raises(ArgumentError, match="limits nothing"):
        stoker.Clip()
