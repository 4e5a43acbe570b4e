import tensorflow as tf

class LossLog(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.rates.append(self.model.optimizer.learning_rate.numpy())  #!
