import tensorflow as tf

class Scaler:
    def get_scaled_loss(self, loss):
        return loss * 128.0

scaler = Scaler()
loss = scaler.get_scaled_loss(loss)
