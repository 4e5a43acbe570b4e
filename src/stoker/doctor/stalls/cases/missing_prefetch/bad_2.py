import tensorflow as tf

dataset = tf.data.Dataset.from_tensor_slices((x, y)).prefetch(1).batch(64)  #!
for a, b in dataset:
    train_step(a, b)
