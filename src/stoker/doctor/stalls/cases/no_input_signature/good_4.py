import tensorflow as tf

ds = tf.data.Dataset.from_generator(rows, tf.int32).padded_batch(8, padded_shapes=[128]).prefetch(1)

@tf.function
def train_step(tokens):
    return tf.reduce_mean(model(tokens))

for tokens in ds:
    train_step(tokens)
