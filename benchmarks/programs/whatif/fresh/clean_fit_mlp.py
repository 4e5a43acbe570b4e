"""A well-made Keras program with nothing to repair: an MLP is fitted on a table cached, batched and prefetched."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
x = rng.normal(size=(16384, 64)).astype("float32")
y = (np.tanh(x[:, :8]).sum(axis=1) > 0).astype("int32")
data = tf.data.Dataset.from_tensor_slices((x, y)).cache().shuffle(16384, seed=1).batch(512).prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential(
    [
        tf.keras.Input((64,)),
        tf.keras.layers.Dense(512, activation="relu"),
        tf.keras.layers.Dense(512, activation="relu"),
        tf.keras.layers.Dense(512, activation="relu"),
        tf.keras.layers.Dense(2),
    ]
)
model.compile(
    optimizer=tf.keras.optimizers.Adam(3e-4),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    steps_per_execution=8,
)


class EpochLine(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        print("epoch", epoch, {k: round(float(v), 4) for k, v in logs.items()})


model.fit(data, epochs=15, verbose=0, callbacks=[EpochLine()])
