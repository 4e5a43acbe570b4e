import tensorflow as tf

dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).prefetch(1)
for a, b in dataset:
    train_step(a, b)
