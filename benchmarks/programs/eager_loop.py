"""An eager GradientTape loop: every op is dispatched from Python."""

import sys
import time

import keras
import tensorflow as tf

keras.utils.set_random_seed(0)
model = keras.Sequential(
    [keras.layers.Dense(n, activation="relu") for n in (128, 128)] + [keras.layers.Dense(10)]
)
optimizer = keras.optimizers.Adam()
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
x = tf.random.normal([32, 100])
y = tf.random.uniform([32], 0, 10, tf.int32)


def train(steps):
    for _ in range(steps):
        with tf.GradientTape() as tape:
            loss = loss_of(y, model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return float(loss)


train(10)
if "--tf-profiler" in sys.argv:
    tf.profiler.experimental.start("logs")
started, cpu = time.perf_counter(), time.process_time()
train(250)
if "--tf-profiler" in sys.argv:
    tf.profiler.experimental.stop()
print("loop_s", time.perf_counter() - started, "cpu_s", time.process_time() - cpu)
