"""An autoencoder learns healthy machine telemetry and then watches a stream of readings for faults."""

import sys

import numpy as np
import tensorflow as tf

repaired = set(sys.argv[1:])
tf.keras.utils.set_random_seed(55)
SENSORS, TRAIN, STREAM = 96, 12000, 220


def telemetry(rng, n, broken=None):
    base = rng.standard_normal((n, 6))
    mix = np.random.default_rng(0).standard_normal((6, SENSORS))
    x = np.tanh(base @ mix) + 0.05 * rng.standard_normal((n, SENSORS))
    if broken is not None:
        x[broken] += rng.standard_normal((broken.sum(), SENSORS))
    return x.astype("float32")


def build():
    x = inputs = tf.keras.Input((SENSORS,))
    for width in (256, 128, 8, 128, 256):
        x = tf.keras.layers.Dense(width, activation="elu")(x)
    outputs = tf.keras.layers.Dense(SENSORS)(x)
    net = tf.keras.Model(inputs, outputs)
    net.compile(optimizer="adam", loss="mse")
    return net


def watch(net, rows):
    if "predict-in-loop" in repaired:
        back = net.predict(rows, verbose=0)
        return ((back - rows) ** 2).mean(axis=1)
    errors = []
    for row in rows:
        back = net.predict(row[np.newaxis], verbose=0)  # stall: predict-in-loop
        errors.append(((back[0] - row) ** 2).mean())
    return np.array(errors)


rng = np.random.default_rng(55)
healthy = telemetry(rng, TRAIN)
faults = rng.random(STREAM) < 0.1
stream = telemetry(rng, STREAM, faults)

autoencoder = build()
autoencoder.fit(healthy, healthy, batch_size=128, epochs=14, verbose=2)
limit = np.quantile(((autoencoder.predict(healthy, batch_size=1024, verbose=0) - healthy) ** 2).mean(axis=1), 0.995)
errors = watch(autoencoder, stream)
alarms = errors > limit
print("alarms", int(alarms.sum()), "faults", int(faults.sum()), "caught", int((alarms & faults).sum()), "mean error", float(errors.mean()))
