import tensorflow as tf

@tf.function
def train_step(x):
    loss = tf.reduce_mean(model(x))
    print("loss", loss)  #!
    return loss
