"""The trainer on two replicas against the plain loop on one device; prints how far each case lies apart, as JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

import stoker

(CPU,) = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(CPU, [tf.config.LogicalDeviceConfiguration()] * 2)
STRATEGY = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
ROWS, BATCH = 33, 16  # the last batch is one row: one of the replicas has none


def data() -> tuple[Any, Any]:
    x = np.random.default_rng(7).normal(size=(ROWS, 3)).astype("float32")
    # Replica 1's rows have the larger errors: a norm taken on each replica alone would be another one.
    return x, (3 * x[:, :1] + np.arange(ROWS)[:, None] % BATCH).astype("float32")


def model() -> Any:
    keras.utils.set_random_seed(3)
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((3,)), layers.Dense(4, activation="tanh", name="encoder"), layers.Dense(1, name="head")]
    )


def loss(net: Any, batch: Any, training: bool = True) -> Any:
    x, y = batch
    return tf.reduce_mean(tf.square(y - tf.cast(net(x, training=training), tf.float32)))


def refusal_of_nadam() -> str:
    with STRATEGY.scope():
        net, optimizer = model(), keras.optimizers.Nadam()
    try:
        stoker.Trainer(net, optimizer, loss).fit(*data(), verbose=0)
    except ValueError as error:
        return str(error)
    raise AssertionError("Nadam was accepted")


def on_replicas(**options: Any) -> tuple[Any, Any]:
    with STRATEGY.scope():
        net, optimizer = model(), keras.optimizers.AdamW(0.02)
    trainer = stoker.Trainer(net, optimizer, loss, **options)
    history = trainer.fit(
        *data(), batch_size=BATCH, epochs=2, shuffle=False, verbose=0, validation_data=data()
    )
    return trainer, history.history


def by_hand(size: int = BATCH, clip: float | None = None) -> tuple[Any, list[float]]:
    net, optimizer = model(), keras.optimizers.AdamW(0.02)
    x, y = data()
    for start in list(range(0, ROWS, size)) * 2:
        batch = tf.constant(x[start : start + size]), tf.constant(y[start : start + size])
        with tf.GradientTape() as tape:
            value = loss(net, batch)
        slopes = tape.gradient(value, [one.value for one in net.trainable_variables])
        if clip is not None:
            slopes = tf.clip_by_global_norm(slopes, clip)[0]
        optimizer.apply(slopes, net.trainable_variables)
    return net, [float(loss(net, (x, y)))]


def copies(net: Any) -> list[list[Any]]:
    """The weights of each replica."""
    return [[copy.numpy() for copy in one.value.values] for one in net.trainable_variables]


def apart(net: Any, other: Any) -> float:
    expected = [one.numpy() for one in other.trainable_variables]
    pairs = zip(copies(net), expected, strict=True)
    return max(float(np.abs(copy - value).max()) for held, value in pairs for copy in held)


def overflow() -> dict[str, Any]:
    """Two batches in float16: the first is infinite on replica 1 alone, the second is good."""
    keras.config.set_dtype_policy("mixed_float16")
    x, y = (part[:32].copy() for part in data())
    x[12, 0] = 1e6
    with STRATEGY.scope():
        net, optimizer = model(), keras.optimizers.SGD(0.01)
    trainer = stoker.Trainer(net, optimizer, loss, loss_scale=stoker.LossScale(64.0))
    trainer.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0)
    other = model()
    with tf.GradientTape() as tape:
        value = loss(other, (tf.constant(x[16:]), tf.constant(y[16:])))
    slopes = tape.gradient(value, [one.value for one in other.trainable_variables])
    keras.optimizers.SGD(0.01).apply(slopes, other.trainable_variables)
    scaler = trainer.update_state.parts["model"].update.scaler
    assert scaler is not None
    return {
        "apart": apart(net, other),
        "scale": float(scaler.scale),
        "updates": int(optimizer.iterations.numpy()),
    }


def measured() -> dict[str, Any]:
    """A metric that the step updates, made inside the scope and outside of it: its value, and what is said."""
    with STRATEGY.scope():
        net, optimizer, inside = model(), keras.optimizers.SGD(0.0), keras.metrics.MeanAbsoluteError("error")

    def trained(metric: Any) -> Any:
        def step(net: Any, batch: Any) -> Any:
            metric.update_state(batch[1], net(batch[0]))
            return loss(net, batch)

        trainer = stoker.Trainer(net, optimizer, step, metrics=[metric])
        return trainer.fit(*data(), batch_size=BATCH, verbose=0).history["error"][0]

    x, y = data()
    expected = float(np.abs(y - net(x).numpy()).mean())
    try:
        said = trained(keras.metrics.MeanAbsoluteError("error"))
    except ValueError as error:
        said = str(error)
    return {"apart": abs(trained(inside) - expected), "refused": said}


class HalvesToEvaluate(keras.Sequential):
    def evaluate(self, x: Any = None, y: Any = None, **kwds: Any) -> Any:
        kwds.pop("_use_cached_eval_dataset", None)
        return super().evaluate(np.asarray(x) / 2, y, **kwds)


class NeverResets(keras.Sequential):
    def reset_metrics(self) -> None:
        pass


def own_methods() -> dict[str, Any]:
    """Validation by a model's own `evaluate`, against the same rows prepared by hand; what is said of a reset."""
    losses: list[float] = []
    x, y = data()
    for kind, held_out in ((HalvesToEvaluate, 2 * x), (keras.Sequential, x), (NeverResets, x)):
        keras.utils.set_random_seed(3)
        with STRATEGY.scope():
            net = kind([keras.Input((3,)), keras.layers.Dense(1)])
            net.compile("sgd", "mse")
        try:
            history = stoker.fit(net, x, y, BATCH, shuffle=False, validation_data=(held_out, y), verbose=0)
        except ValueError as error:
            return {"apart": abs(losses[0] - losses[1]) / losses[1], "refused": str(error)}
        losses.append(history.history["val_loss"][0])
    raise AssertionError("a reset_metrics of the model's own was passed over")


def main() -> None:
    found: dict[str, Any] = {"measured": measured()}
    plain, (held_out,) = by_hand()
    trainer, history = on_replicas()
    found["plain"] = apart(trainer.model, plain)
    found["validation"] = abs(history["val_loss"][-1] - held_out) / held_out
    found["clip"] = apart(on_replicas(clip=stoker.Clip(global_norm=2.0))[0].model, by_hand(clip=2.0)[0])
    trainer, _ = on_replicas(
        accumulate=2, ema=0.5, rates={"head": stoker.Times(1.0)}, freeze={"head": range(90, 99)}
    )
    found["accumulated"] = apart(trainer.model, by_hand(2 * BATCH)[0])
    with trainer.averaged_weights():
        found["averaged"] = apart(trainer.model, by_hand(2 * BATCH)[0])
    found["overflow"] = overflow()
    found["own methods"] = own_methods()
    found["nadam"] = refusal_of_nadam()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
