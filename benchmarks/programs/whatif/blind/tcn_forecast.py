"""Electric load forecasting with a temporal convolutional network in Keras, watching the weights while it trains."""

import sys

import numpy as np
import tensorflow as tf
from tensorflow import keras

repair = set(sys.argv[1:])
keras.utils.set_random_seed(19)
HISTORY, HORIZON, BATCH, EPOCHS = 48, 6, 32, 3

hours = np.arange(16000)
noise = np.random.default_rng(19).standard_normal(hours.size)
load = 50 + 10 * np.sin(hours * 2 * np.pi / 24) + 5 * np.sin(hours * 2 * np.pi / 168) + 1.5 * np.convolve(noise, np.ones(5) / 5, "same")
windows = np.lib.stride_tricks.sliding_window_view(load.astype("float32"), HISTORY + HORIZON).copy()


def split_and_scale(window):
    past, future = window[..., :HISTORY], window[..., HISTORY:]
    centre = tf.reduce_mean(past, axis=-1, keepdims=True)
    spread = tf.math.reduce_std(past, axis=-1, keepdims=True) + 1e-3
    return ((past - centre) / spread)[..., None], (future - centre) / spread


source = tf.data.Dataset.from_tensor_slices(windows).shuffle(4096, seed=1)
if "map-before-batch" in repair:
    dataset = source.batch(BATCH).map(split_and_scale, num_parallel_calls=tf.data.AUTOTUNE)
else:
    dataset = source.map(split_and_scale, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH)  # stall: map-before-batch
dataset = dataset.prefetch(tf.data.AUTOTUNE)


class WeightWatch(keras.callbacks.Callback):
    """Keeps the norm and the spectral radius of every kernel."""

    def __init__(self):
        super().__init__()
        self.history = []

    def measure(self):
        row = []
        for w in self.model.get_weights():
            if w.ndim > 1:
                row.append((float(np.linalg.norm(w)), float(np.linalg.svd(w.reshape(-1, w.shape[-1]), compute_uv=False)[0])))
        self.history.append(row)


class EveryBatch(WeightWatch):
    def on_train_batch_end(self, batch, logs=None):  # stall: host-callback-per-batch
        self.measure()


class EveryEpoch(WeightWatch):
    def on_epoch_end(self, epoch, logs=None):
        self.measure()


x = inputs = keras.Input((HISTORY, 1))
for dilation in (1, 2, 4, 8):
    h = keras.layers.Conv1D(16, 3, padding="causal", dilation_rate=dilation, activation="relu")(x)
    x = keras.layers.add([h, keras.layers.Conv1D(16, 1)(x)])
outputs = keras.layers.Dense(HORIZON)(x[:, -1])
model = keras.Model(inputs, outputs)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mae")
watch = EveryEpoch() if "host-callback-per-batch" in repair else EveryBatch()
model.fit(dataset, epochs=EPOCHS, verbose=2, callbacks=[watch])
print("measured", len(watch.history), "times; last norms", [round(n, 3) for n, _ in watch.history[-1]])
