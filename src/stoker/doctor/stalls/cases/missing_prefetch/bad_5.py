from itertools import cycle

import tensorflow as tf

labelled = tf.data.Dataset.from_tensor_slices((images, labels)).batch(32)  #!
unlabelled = tf.data.Dataset.from_tensor_slices(more_images).batch(64)  #!

@tf.function
def train_step(x, y, u):
    return tf.reduce_mean(model(x) - y) + tf.reduce_mean(model(u))

for epoch in range(10):
    for (x, y), u in zip(labelled, cycle(unlabelled)):
        train_step(x, y, u)
