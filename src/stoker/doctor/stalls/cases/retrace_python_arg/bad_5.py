import tensorflow as tf

@tf.function
def train_step(x, rate, step):
    return tf.reduce_mean(x) * rate / tf.cast(step, tf.float32)

rate = 1.0
for step in range(1000):
    train_step(batch, rate, step)  #!
    rate *= 0.99
