"""The repair of predict_in_loop.py.

All rows are predicted in one call.
"""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)

rows = np.random.default_rng(0).normal(size=(60, 64)).astype(np.float32)
model = tf.keras.Sequential(
    [tf.keras.layers.Input([64]), tf.keras.layers.Dense(128, activation="relu"), tf.keras.layers.Dense(1)]
)

scores = model.predict(rows, verbose=0)[:, 0]

print(f"best {max(scores):.4f}")
