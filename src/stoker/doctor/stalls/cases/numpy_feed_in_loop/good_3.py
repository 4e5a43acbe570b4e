import numpy as np
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
sample = np.zeros((1, 8), dtype="float32")
model(sample)
for batch in dataset:
    train_step(batch)
