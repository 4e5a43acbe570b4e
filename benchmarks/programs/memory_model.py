"""A model of keras.applications with random weights, trained for a few steps: a program of benchmarks/memory.py.

With --device-memory it runs on a software GPU of that size and prints its counted peak.
"""

from __future__ import annotations

import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--size", type=int, required=True)
parser.add_argument("--batch", type=int, default=8)
parser.add_argument("--device-memory")
options = parser.parse_args()
if options.device_memory:
    from stoker import software_gpu

    software_gpu.enable(memory=options.device_memory)

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

STEPS = 3
shape = (options.size, options.size, 3)
model = getattr(keras.applications, options.model)(weights=None, input_shape=shape, classes=10)
model.compile("adam", "sparse_categorical_crossentropy")
images = np.random.default_rng(0).random((options.batch, *shape), dtype="float32")
labels = np.zeros(options.batch, "int32")
data = tf.data.Dataset.from_tensor_slices((images, labels)).repeat(STEPS).batch(options.batch)
try:
    model.fit(data, verbose=0)
    print("peak", tf.config.experimental.get_memory_info("GPU:0")["peak"], flush=True)
except tf.errors.ResourceExhaustedError:
    print("out of memory", flush=True)
# At once: no teardown, of which a process that has used TensorFlow has two seconds.
os._exit(0)
