import tensorflow as tf

@tf.function
def train_step(x, training, rate):
    return model(x, training=training) * rate

RATE = 0.5
for x in dataset:
    train_step(x, True, RATE)
