import tensorflow as tf

class Trainer:
    def on_train_batch_end(self, batch):
        print(batch)
