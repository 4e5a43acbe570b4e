import tensorflow as tf

class Trainer:
    def __init__(self, model):
        self.model = model
        self.step = tf.function(self._step)

    def _step(self, x):
        return self.model(x)

    def train(self, dataset):
        for batch in dataset:
            self.step(batch)
