import tensorflow as tf

class Trainer:
    def __init__(self):
        self.model = tf.keras.Sequential([tf.keras.layers.Dense(1)])

    def run(self, x, y, epochs):
        self.model.fit(x, y, epochs=epochs)  #!
