import tensorflow as tf

class Trainer:
    def run_step(self, batch):
        @tf.function  #!
        def step(b):
            return tf.reduce_mean(self.model(b))
        return step(batch)

    def train(self, dataset):
        for batch in dataset:
            self.run_step(batch)
