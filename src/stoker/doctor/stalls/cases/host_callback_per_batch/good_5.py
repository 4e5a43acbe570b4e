from tensorflow import keras

class Sparse(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch % self.every != 0:
            return
        self.model.save_weights(self.path)
