import tensorflow as tf

class Snapshots(tf.keras.callbacks.Callback):
    def on_batch_end(self, batch, logs=None):  #!
        sample = self.model.predict(self.x)
        self.images.append(sample)
