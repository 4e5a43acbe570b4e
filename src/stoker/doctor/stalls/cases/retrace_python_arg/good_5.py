import tensorflow as tf

def plain_step(x, step):
    return tf.reduce_mean(x) * step

for step in range(1000):
    plain_step(batch, step)
