import wandb
from tensorflow.keras.callbacks import Callback

class Track(Callback):
    def on_train_batch_end(self, batch, logs=None):  #!
        wandb.log(logs)
