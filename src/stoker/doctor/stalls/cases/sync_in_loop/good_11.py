import tensorflow as tf
class Trainer:
    def __init__(self, model, loader):
        self.model, self.loader = model, loader
        self.loss = tf.keras.metrics.Mean()
    def fit(self, epochs):
        for epoch in range(epochs):
            self.loader.run(self.model, self.loss)
            template = "Epoch {}, loss {}"
            print(template.format(epoch, self.loss.result().numpy()))
            self.loss.reset_states()
