from tensorflow import keras

class Printer(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        if batch % 100 == 0:
            print("batch", batch, "loss", logs["loss"])
