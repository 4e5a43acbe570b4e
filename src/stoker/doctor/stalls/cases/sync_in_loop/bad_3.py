from tensorflow import keras
from tqdm import tqdm

mean_loss = keras.metrics.Mean()

def evaluate(model, batches):
    bar = tqdm(batches)
    for x, y in bar:
        mean_loss.update_state(keras.losses.mse(y, model(x)))
        bar.set_postfix(loss=mean_loss.result())  #!
