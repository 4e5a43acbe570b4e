import tensorflow as tf

class Trainer:
    def __init__(self):
        self.steps = tf.Variable(0)

    @tf.function
    def step(self, x):
        self.steps.assign_add(1)
        return tf.reduce_sum(x)
