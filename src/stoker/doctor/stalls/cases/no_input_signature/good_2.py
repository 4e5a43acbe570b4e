import tensorflow as tf

dataset = tf.data.Dataset.from_tensor_slices(x).batch(32, drop_remainder=True).prefetch(1)

@tf.function
def train_step(tokens):
    return tf.reduce_mean(model(tokens))

for tokens in dataset:
    train_step(tokens)
