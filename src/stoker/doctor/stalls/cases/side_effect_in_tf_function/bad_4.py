import tensorflow as tf

class Trainer:
    def __init__(self):
        self.steps = 0

    @tf.function
    def step(self, x):
        self.steps += 1  #!
        return tf.reduce_sum(x)
