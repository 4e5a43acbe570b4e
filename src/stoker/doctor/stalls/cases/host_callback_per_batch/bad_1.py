from tensorflow import keras

class Printer(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):  #!
        print("batch", batch, "loss", logs["loss"])
