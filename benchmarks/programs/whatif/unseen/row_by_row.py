"""A trained net asked by an agent for one action at a time with `predict`, between steps of its own world."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(11)
model = tf.keras.Sequential(
    [tf.keras.Input((12,)), tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(3)]
)
ask = tf.function(lambda x: model(x, training=False))
state = np.zeros(12, "float32")
world = np.random.default_rng(11).normal(size=(3, 12, 12)).astype("float32")
for step in range(80):
    row = state[None]
    if "predict-in-loop" in REPAIRED:
        values = ask(row).numpy()
    else:
        values = model.predict(row, verbose=0)  # stall: predict-in-loop
    for _ in range(200):
        state = np.tanh(world[int(values[0].argmax())] @ state + 0.1)
