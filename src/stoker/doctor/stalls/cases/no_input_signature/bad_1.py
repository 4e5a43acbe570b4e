import tensorflow as tf

dataset = tf.data.Dataset.from_generator(sentences, tf.int32).padded_batch(32).prefetch(1)

@tf.function  #!
def train_step(tokens):
    return tf.reduce_mean(model(tokens))

for tokens in dataset:
    train_step(tokens)
