"""Keras `fit` with small steps: 100-128-128-10, Adam, batch 32."""

import sys
import time

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
x = np.random.rand(10_000, 100).astype("float32")
y = np.random.randint(0, 10, 10_000)
model = keras.Sequential(
    [keras.layers.Dense(n, activation="relu") for n in (128, 128)] + [keras.layers.Dense(10)]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=32, epochs=1, verbose=0)

if "--tf-profiler" in sys.argv:
    tf.profiler.experimental.start("logs")
started = time.perf_counter()
model.fit(x, y, batch_size=32, epochs=20, verbose=0)
if "--tf-profiler" in sys.argv:
    tf.profiler.experimental.stop()
print("loop_s", time.perf_counter() - started)
