import numpy as np
import tensorflow as tf

def add_noise(x):
    return x + np.random.normal(size=(32, 8))  #!

@tf.function
def train_step(x):
    return model(add_noise(x))
