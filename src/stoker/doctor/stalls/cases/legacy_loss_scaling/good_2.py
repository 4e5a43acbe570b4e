import tf_keras

def scaled(optimizer, loss):
    return optimizer.get_scaled_loss(loss)
