"""A compiled step called from a Python loop over a tf.data pipeline."""

import itertools
import sys
import time

import tensorflow as tf

tf.random.set_seed(0)
sizes = (100, 256, 256, 10)
weights = [tf.Variable(tf.random.normal(shape, stddev=0.05)) for shape in itertools.pairwise(sizes)]
data = tf.data.Dataset.from_tensor_slices(tf.random.normal([4096, 100])).repeat().batch(64).prefetch(2)


@tf.function
def step(x):
    with tf.GradientTape() as tape:
        for weight in weights[:-1]:
            x = tf.nn.relu(x @ weight)
        loss = tf.reduce_mean(tf.square(x @ weights[-1] - 1.0))
    for weight, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        weight.assign_sub(0.01 * gradient)
    return loss


# Kept until the end: when an iterator goes away, tf.data may block for seconds, whoever measures.
batches = iter(data)


def train(steps):
    for _ in range(steps):
        loss = step(next(batches))
    return float(loss)


train(50)
if "--tf-profiler" in sys.argv:
    tf.profiler.experimental.start("logs")
started, cpu = time.perf_counter(), time.process_time()
train(6000)
if "--tf-profiler" in sys.argv:
    tf.profiler.experimental.stop()
print("loop_s", time.perf_counter() - started, "cpu_s", time.process_time() - cpu)
