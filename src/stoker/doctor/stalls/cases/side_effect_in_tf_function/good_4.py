import random
import tensorflow as tf

@tf.function
def train_step(x):
    return tf.reduce_mean(model(x))

for x in dataset:
    loss = train_step(x)
    history.append(loss)
    if random.random() < 0.01:
        print("loss", loss)
