"""Keras `fit` with small steps: 100-128-128-10, Adam, batch 32.

The time is taken between two batches: when an iterator goes away, tf.data may block for seconds, whoever measures.
"""

import sys
import time

import keras
import numpy as np
import tensorflow as tf

FIRST, LAST = 100, 5100


class Clock(keras.callbacks.Callback):
    """The time from one batch to another."""

    def on_train_batch_end(self, batch, logs=None):
        if batch == FIRST:
            if "--tf-profiler" in sys.argv:
                tf.profiler.experimental.start("logs")
            self.started, self.cpu = time.perf_counter(), time.process_time()
        elif batch == LAST:
            if "--tf-profiler" in sys.argv:
                tf.profiler.experimental.stop()
            print("loop_s", time.perf_counter() - self.started, "cpu_s", time.process_time() - self.cpu)


keras.utils.set_random_seed(0)
x = np.random.rand(32 * (LAST + 10), 100).astype("float32")
y = np.random.randint(0, 10, len(x))
model = keras.Sequential(
    [keras.layers.Dense(n, activation="relu") for n in (128, 128)] + [keras.layers.Dense(10)]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=32, epochs=1, verbose=0, callbacks=[Clock()])
