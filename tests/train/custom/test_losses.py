"""Several losses, two optimizers, gradient penalty and loss scaling, against the same written out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from tests.train import plain


def two_losses(net: Any, batch: Any) -> dict[str, Any]:
    x, y = batch
    guess = net(x, training=True)
    return {"square": tf.reduce_mean(tf.square(y - guess)), "size": 30 * tf.reduce_mean(tf.abs(guess))}


def fit(trainer: stoker.Trainer, epochs: int = 2, **arguments: Any) -> Any:
    return trainer.fit(
        *plain.data(), batch_size=plain.BATCH, epochs=epochs, shuffle=False, verbose=0, **arguments
    )


def test_fixed_weights() -> None:
    def total(net: Any, batch: Any) -> Any:
        found = two_losses(net, batch)
        return found["square"] + 0.01 * found["size"]

    expected = plain.train(plain.model(), keras.optimizers.SGD(0.1), loss=total)
    net = plain.model()
    trainer = stoker.Trainer(net, keras.optimizers.SGD(0.1), two_losses, losses={"square": 1.0, "size": 0.01})
    history = fit(trainer).history
    plain.assert_same(plain.weights(net), expected)
    assert history["loss"][1] == pytest.approx(history["square"][1] + 0.01 * history["size"][1], rel=1e-5)


def test_weights_by_uncertainty() -> None:
    """One loss is balanced, one keeps its weight: both kinds together."""
    net, optimizer = plain.model(), keras.optimizers.Adam(0.02)
    spread = keras.Variable(0.0)
    everything = [*net.trainable_variables, spread]
    for batch in plain.batches(*plain.data()):
        with tf.GradientTape() as tape:
            found = two_losses(net, batch)
            total = 0.5 * found["square"] + tf.exp(-spread.value) * found["size"] + spread.value
        optimizer.apply(tape.gradient(total, [one.value for one in everything]), everything)
    own = plain.model()
    trainer = stoker.Trainer(
        own, keras.optimizers.Adam(0.02), two_losses, losses={"square": 0.5, "size": "auto"}
    )
    history = fit(trainer).history
    plain.assert_same(plain.weights(own), plain.weights(net))
    # The larger loss got the smaller weight: the mean over the epoch lies on the way from 1 to the last one.
    assert np.exp(-spread.numpy()) < history["size_weight"][1] < 1


def test_weights_by_the_norms_of_gradients() -> None:
    net, optimizer = plain.model(), keras.optimizers.SGD(0.01)
    norms: dict[str, float] = {}
    for batch in plain.batches(*plain.data()):
        slopes = {}
        for name in ("square", "size"):
            slopes[name] = plain.gradients(net, batch, lambda *both, name=name: two_losses(*both)[name])
            norm = float(tf.linalg.global_norm(slopes[name]))
            norms[name] = 0.8 * norms[name] + 0.2 * norm if name in norms else norm
        common = sum(norms.values()) / 2
        weights = {name: common / norm for name, norm in norms.items()}
        mixed = [weights["square"] * a + weights["size"] * b for a, b in zip(*slopes.values(), strict=True)]
        optimizer.apply(mixed, net.trainable_variables)
    own = plain.model()
    fit(
        stoker.Trainer(
            own, keras.optimizers.SGD(0.01), two_losses, losses=stoker.Balance("gradients", memory=0.8)
        )
    )
    plain.assert_same(plain.weights(own), plain.weights(net))


class Adversaries(stoker.Trainer):
    """A critic that is updated twice a step, with gradient penalty, and a generator."""

    def train_step(self, batch: Any) -> Any:
        critic, generator = self.models["critic"], self.models["generator"]
        noise = batch[:, :2]
        for _ in range(2):
            with tf.GradientTape() as tape:
                fake = generator(noise)
                penalty = stoker.gradient_penalty(critic, batch, fake, seed=self.random)
                critic_loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(batch)) + 10 * penalty
            self.minimize(tape, critic_loss, "critic")
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(critic(generator(noise)))
        self.minimize(tape, loss, "generator")
        return {"critic": critic_loss, "generator": loss}


def adversaries() -> tuple[dict[str, Any], dict[str, Any]]:
    keras.utils.set_random_seed(5)
    layers = keras.layers
    critic = keras.Sequential([keras.Input((3,)), layers.Dense(4, activation="tanh"), layers.Dense(1)])
    generator = keras.Sequential([keras.Input((2,)), layers.Dense(3)])
    optimizers = {"critic": keras.optimizers.Adam(0.01), "generator": keras.optimizers.SGD(0.05)}
    return {"critic": critic, "generator": generator}, optimizers


@pytest.mark.slow
def test_adversarial_training_with_gradient_penalty() -> None:
    rows = plain.data()[0]
    models, optimizers = adversaries()
    Adversaries(models, optimizers, seed=11).fit(rows, batch_size=8, epochs=2, shuffle=False, verbose=0)

    by_hand, optimizers = adversaries()
    critic, generator = by_hand["critic"], by_hand["generator"]
    random = keras.random.SeedGenerator(11)
    for start in [0, 8, 16] * 2:
        real = tf.constant(rows[start : start + 8])
        for _ in range(2):
            with tf.GradientTape() as tape:
                fake = generator(real[:, :2])
                share = keras.random.uniform((8, 1), seed=random)
                points = share * real + (1 - share) * fake
                with tf.GradientTape() as inner:
                    inner.watch(points)
                    scores = critic(points)
                lengths = tf.norm(inner.gradient(scores, points), axis=1)
                loss = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real))
                loss += 10 * tf.reduce_mean((lengths - 1) ** 2)
            _apply(optimizers["critic"], tape, loss, critic)
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(critic(generator(real[:, :2])))
        _apply(optimizers["generator"], tape, loss, generator)
    for name, model in models.items():
        plain.assert_same(plain.weights(model), plain.weights(by_hand[name]), 1e-4)


def _apply(optimizer: Any, tape: Any, loss: Any, model: Any) -> None:
    optimizer.apply(
        tape.gradient(loss, [v.value for v in model.trainable_variables]), model.trainable_variables
    )


def test_an_own_train_step_is_asked_for_where_it_is_needed() -> None:
    models, optimizers = adversaries()
    with pytest.raises(ArgumentError, match="override train_step"):
        stoker.Trainer(models, optimizers)
    with pytest.raises(ArgumentError, match="give one for each"):
        Adversaries(models, {"critic": optimizers["critic"]})


@pytest.fixture
def policy(request: Any) -> Iterator[str]:
    keras.config.set_dtype_policy(request.param)
    yield request.param
    keras.config.set_dtype_policy("float32")


@pytest.mark.parametrize("policy", ["mixed_bfloat16"], indirect=True)
def test_bfloat16_needs_no_scale(policy: str) -> None:
    net = plain.model()
    trainer = stoker.Trainer(net, keras.optimizers.SGD(0.05), mixed_loss)
    fit(trainer)
    # Two digits: all that bfloat16 has.
    expected = plain.train(plain.model(), keras.optimizers.SGD(0.05), loss=mixed_loss)
    plain.assert_same(plain.weights(net), expected, 1e-2)
    assert trainer.update_state.parts["model"].update.scaler is None


def mixed_loss(net: Any, batch: Any, training: bool = True) -> Any:
    x, y = batch
    return tf.reduce_mean(tf.square(y - tf.cast(net(x, training=training), tf.float32)))


@pytest.mark.parametrize("policy", ["mixed_float16"], indirect=True)
def test_loss_scaling_moves_as_kerass_does(policy: str) -> None:
    """Overflow at the first steps (the scale is too large), growth after two good ones."""
    net = plain.model()
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.Adam(0.02), 2.0**17, dynamic_growth_steps=2
    )
    scales = []
    for batch in plain.batches(*plain.data(), epochs=3):
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(mixed_loss(net, batch))
        _apply(optimizer, tape, loss, net)
        scales.append(float(optimizer.dynamic_scale))
    assert scales[0] < 2.0**17, "the first step must overflow for this test to mean anything"
    assert max(scales[i + 1] - scales[i] for i in range(len(scales) - 1)) > 0, "and a later one must grow"
    own = plain.model()
    scale = stoker.LossScale(initial=2.0**17, patience=2)
    trainer = stoker.Trainer(own, keras.optimizers.Adam(0.02), mixed_loss, loss_scale=scale)
    fit(trainer, epochs=3)
    plain.assert_same(plain.weights(own), plain.weights(net), 1e-3)
    scaler = trainer.update_state.parts["model"].update.scaler
    assert scaler is not None
    assert float(scaler.scale) == scales[-1]


@pytest.mark.parametrize("policy", ["mixed_float16"], indirect=True)
def test_a_batch_that_overflows_is_left_out_of_an_accumulated_update(policy: str) -> None:
    x, y = (part.copy() for part in plain.data(16))
    x[3, 0] = 1e6  # infinite in float16
    net = plain.model()
    trainer = stoker.Trainer(
        net, keras.optimizers.SGD(0.1), mixed_loss, accumulate=2, loss_scale=stoker.LossScale(256.0)
    )
    trainer.fit(x, y, batch_size=8, shuffle=False, verbose=0)
    other = plain.model()
    keras.optimizers.SGD(0.1).apply(
        plain.gradients(other, (tf.constant(x[8:]), tf.constant(y[8:])), mixed_loss),
        other.trainable_variables,
    )
    plain.assert_same(plain.weights(net), plain.weights(other), 1e-3)
