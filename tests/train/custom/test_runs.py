"""A trainer's run: what stops it, what it goes back from, what it evaluates, and where it goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from stoker.train.custom.program import Journal, trainer_program
from tests.train import plain


def fit(trainer: stoker.Trainer, x: Any, y: Any, **arguments: Any) -> Any:
    arguments = {"batch_size": plain.BATCH, "shuffle": False, "verbose": 0, **arguments}
    return trainer.fit(x, y, **arguments)


def test_nan_stops_with_the_weights_before_it() -> None:
    x, y = (part.copy() for part in plain.data())
    y[12] = np.nan  # in the second batch of three
    net = plain.model()
    history = fit(stoker.Trainer(net, keras.optimizers.Adam(0.02), plain.squared), x, y, epochs=5)
    (event,) = history.events
    assert (event["event"], event["reason"], event["step"]) == ("stop", "not finite", 1)
    assert np.isnan(event["loss"])
    other, optimizer = plain.model(), keras.optimizers.Adam(0.02)
    optimizer.apply(plain.gradients(other, (x[:8], y[:8])), other.trainable_variables)
    plain.assert_same(plain.weights(net), plain.weights(other))
    assert len(history.history["loss"]) == 1
    assert np.isfinite(history.history["loss"][0])


def test_a_finite_loss_with_an_infinite_gradient_stops_too(capfd: Any) -> None:
    def step(net: Any, batch: Any) -> Any:
        return tf.reduce_mean(tf.sqrt(tf.abs(net(batch[0]) * 0.0)))  # the root's slope at 0

    net = plain.model()
    history = fit(stoker.Trainer(net, keras.optimizers.SGD(0.1), step), *plain.data(), verbose=1)
    assert [(event["step"], event["reason"]) for event in history.events] == [(0, "gradient not finite")]
    # No step counted: the loss of the epoch is not a perfect one.
    assert np.isnan(history.history["loss"]).all()
    line = "stoker: the loss at step 0 was 0, gradient not finite: training stops with the weights from before it"
    assert line in capfd.readouterr().out.splitlines()
    plain.assert_same(plain.weights(net), plain.weights(plain.model()), 0)


def test_nan_may_be_let_through() -> None:
    x, y = plain.data()
    net = plain.model()
    trainer = stoker.Trainer(net, keras.optimizers.SGD(0.1), plain.squared, stop_on_nan=False)
    history = fit(trainer, x, y * np.nan)
    assert history.events == []
    assert np.isnan(plain.weights(net)[0]).any()


def linear() -> Any:
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, kernel_initializer="ones")])


def test_a_spike_goes_back_and_on_with_a_lower_rate(tmp_path: Path, capfd: Any) -> None:
    """A rate that diverges: the trainer goes back as far as it must, and lowers it until it does not."""
    x, y = plain.data(96)
    net = linear()
    spike = stoker.Spike(factor=6, warmup=4, memory=0.5, rate=0.25, retries=5)
    trainer = stoker.Trainer(net, keras.optimizers.SGD(1.1), plain.squared, on_spike=spike)
    checkpoint = stoker.Checkpoint(tmp_path, every=2, keep=9)
    history = fit(trainer, x, y, checkpoint=checkpoint, plan="resident, none", epochs=2, verbose=2)
    first = history.events[0]
    assert (first["event"], first["reason"], first["rate"]) == ("recovery", "a spike", 0.25)
    said = f"back to step {first['back_to']}; from here the rate is 0.25 of what it was"
    assert said in capfd.readouterr().out
    # The steps that count, at the rates they were made with.
    rates = np.full(24, 1.1)
    for number, event in enumerate(history.events, 1):
        assert (event["event"], event["rate"]) == ("recovery", 0.25**number)
        rates[event["back_to"] :] = 1.1 * event["rate"]
    other = linear()
    for rate, batch in zip(rates, plain.batches(x, y), strict=True):
        for weight, slope in zip(other.trainable_variables, plain.gradients(other, batch), strict=True):
            weight.assign_sub(np.float32(rate) * slope)
    plain.assert_same(plain.weights(net), plain.weights(other), 1e-4)


def test_a_spike_that_comes_again_at_once_goes_back_further() -> None:
    trainer = stoker.Trainer(plain.model(), keras.optimizers.SGD(), plain.squared)
    journal = Journal(events=[{"event": "recovery", "step": 17}])
    course = trainer_program(trainer, journal).course
    assert course.choose_rewind_limit(20) == 20
    journal.events[0]["back_to"] = 14
    journal.events.append({"event": "recovery", "step": 17})
    assert course.choose_rewind_limit(20) == 14
    journal.events[1]["step"] = 18
    assert course.choose_rewind_limit(20) == 20, "it came further than the last time"


def test_a_spike_in_the_data_is_passed_in_another_order_or_ends_the_run(tmp_path: Path) -> None:
    x, y = (part.copy() for part in plain.data(64))
    y[20] = 1e6
    spike = stoker.Spike(factor=10, warmup=1, rate=1.0, reorder=True, retries=2)
    trainer = stoker.Trainer(linear(), keras.optimizers.SGD(0.01), plain.squared, on_spike=spike)
    keras.utils.set_random_seed(1)
    history = fit(trainer, x, y, checkpoint=tmp_path, shuffle=True, epochs=3)
    assert [event["event"] for event in history.events] == ["recovery", "recovery", "stop"]
    assert all(event["reordered"] for event in history.events[:2])
    steps = [event["step"] for event in history.events]
    assert len(set(steps)) > 1, "another order meets the bad row at another step"
    assert np.abs(plain.weights(trainer.model)[0]).max() < 10


def test_what_recovery_needs_is_asked_for(tmp_path: Path) -> None:
    trainer = stoker.Trainer(
        plain.model(), keras.optimizers.SGD(), plain.squared, on_spike=stoker.Spike(reorder=True)
    )
    with pytest.raises(ArgumentError, match="goes back to a checkpoint"):
        fit(trainer, *plain.data())
    with pytest.raises(ArgumentError, match="has its own order"):
        fit(trainer, *plain.data(), checkpoint=tmp_path)
    with pytest.raises(ArgumentError, match="same spike again"):
        stoker.Spike(rate=1)


def test_evaluation_every_few_steps() -> None:
    x, y = plain.data()
    losses = []
    net, optimizer = plain.model(), keras.optimizers.SGD(0.05)
    for step, batch in enumerate(plain.batches(x, y), 1):
        optimizer.apply(plain.gradients(net, batch), net.trainable_variables)
        if step % 2 == 0:
            losses.append(float(plain.squared(net, (x, y))))
    trainer = stoker.Trainer(plain.model(), keras.optimizers.SGD(0.05), plain.squared)
    history = fit(trainer, x, y, epochs=2, validation_data=(x, y), evaluate_every=2)
    assert [found["step"] for found in history.evaluations] == [2, 4, 6]
    assert [found["loss"] for found in history.evaluations] == pytest.approx(losses, rel=1e-4)
    # An evaluation in the middle leaves the epoch's own means alone.
    undisturbed = fit(
        stoker.Trainer(plain.model(), keras.optimizers.SGD(0.05), plain.squared), x, y, epochs=2
    )
    assert history.history["loss"] == pytest.approx(undisturbed.history["loss"])
    assert trainer.evaluate(x, y, batch_size=7)["loss"] == pytest.approx(losses[-1], rel=1e-4)
    with pytest.raises(ArgumentError, match="validation_data"):
        fit(trainer, x, y, evaluate_every=2)


def test_a_step_that_cannot_evaluate_says_how_it_could() -> None:
    trainer = stoker.Trainer(plain.model(), keras.optimizers.SGD(), lambda net, batch: net(batch[0]))
    with pytest.raises(ArgumentError, match="a parameter `training`"):
        fit(trainer, *plain.data(), validation_data=plain.data())


def test_a_dataset_of_dicts_and_callbacks_that_change_the_rate() -> None:
    x, y = plain.data()
    rows = tf.data.Dataset.from_tensor_slices({"features": x, "target": y}).batch(plain.BATCH)

    def step(net: Any, batch: Any) -> Any:
        return plain.squared(net, (batch["features"], batch["target"]))

    net = plain.model()
    slower = keras.callbacks.LearningRateScheduler(lambda epoch, rate: 0.1 if epoch == 0 else 0.01)
    trainer = stoker.Trainer(net, keras.optimizers.SGD(0.5), step)
    trainer.fit(rows, epochs=2, verbose=0, callbacks=[slower])
    other, optimizer = plain.model(), keras.optimizers.SGD(0.1)
    for number, batch in enumerate(plain.batches(x, y)):
        optimizer.learning_rate = 0.1 if number < 3 else 0.01
        optimizer.apply(plain.gradients(other, batch), other.trainable_variables)
    plain.assert_same(plain.weights(net), plain.weights(other))


class Crash(keras.callbacks.Callback):
    """Ends a run at a step, as a crash would."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.steps, self.at = 0, at

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.steps += 1
        if self.steps == self.at:
            raise RuntimeError("crash")


def with_everything(on_spike: stoker.Spike | None = None, dropout: float = 0.3) -> stoker.Trainer:
    def step(net: Any, batch: Any, training: bool) -> Any:
        x, y = batch
        guess = net(x, training=training)
        return {"square": tf.square(y - guess), "size": tf.abs(guess)}

    keras.utils.set_random_seed(3)
    layers = keras.layers
    net = keras.Sequential(
        [keras.Input((3,)), layers.Dense(6, name="encoder"), layers.Dropout(dropout), layers.Dense(1)]
    )
    return stoker.Trainer(
        net,
        keras.optimizers.Adam(0.02),
        step,
        losses=stoker.Balance(),
        clip=stoker.Clip(global_norm=1.0),
        rates={"encoder": stoker.Times(0.5)},
        freeze={"encoder/bias": 4},
        accumulate=2,
        ema=0.9,
        on_spike=on_spike,
    )


def test_a_crash_changes_no_bit(tmp_path: Path) -> None:
    """Every piece of the update has state: all of it must come back."""
    x, y = plain.data(56)
    arguments = {"epochs": 3, "shuffle": True, "validation_data": (x, y)}
    whole = with_everything(stoker.Spike())
    expected = fit(whole, x, y, checkpoint=tmp_path / "whole", **arguments)
    checkpoint = stoker.Checkpoint(tmp_path / "broken", every=3)
    with pytest.raises(RuntimeError, match="crash"):
        fit(
            with_everything(stoker.Spike()),
            x,
            y,
            checkpoint=checkpoint,
            callbacks=[Crash(at=12)],
            **arguments,
        )
    again = with_everything(stoker.Spike())
    history = fit(again, x, y, checkpoint=checkpoint, callbacks=[Crash(at=999)], **arguments)
    for one, other in zip(again.model.weights, whole.model.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    for name, variable in whole.state.items():
        np.testing.assert_array_equal(again.state[name].numpy(), variable.numpy(), err_msg=name)
    assert history.history == expected.history


def test_everything_at_once_inside_xla() -> None:
    """The whole loop in XLA, conditions and all, gives the numbers of the loop without it."""
    x, y = plain.data(48)
    found = []
    for plan in ("resident, none", "resident, loop"):
        # XLA draws its random numbers in its own way: no dropout here.
        trainer = with_everything(dropout=0.0)
        trainer.fit(x, y, batch_size=8, epochs=2, verbose=0, plan=plan, shuffle=False)
        found.append(plain.weights(trainer.model))
    plain.assert_same(found[0], found[1], 1e-4)


def test_a_step_runs_in_python_only_while_it_is_traced() -> None:
    calls: list[int] = []

    def step(net: Any, batch: Any) -> Any:
        calls.append(len(calls))
        return plain.squared(net, batch)

    trainer = stoker.Trainer(plain.model(), keras.optimizers.SGD(0.1), step)
    fit(trainer, *plain.data(), epochs=3)
    assert len(calls) <= 3
    calls.clear()
    fit(trainer, *plain.data(), epochs=3)
    assert calls == []
