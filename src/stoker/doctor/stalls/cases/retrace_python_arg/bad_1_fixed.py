import tensorflow as tf

@tf.function
def train_step(x, step):
    return tf.reduce_mean(x) * tf.cast(step, tf.float32)

for step in range(1000):
    train_step(batch, tf.constant(step))
