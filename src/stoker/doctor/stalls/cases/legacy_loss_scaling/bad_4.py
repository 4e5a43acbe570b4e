import tensorflow as tf

class Trainer:
    def apply(self, tape, loss):
        grads = tape.gradient(loss, self.model.trainable_variables)
        return self.optimizer.get_unscaled_gradients(grads)  #!
