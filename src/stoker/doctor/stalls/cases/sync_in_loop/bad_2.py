import tensorflow as tf

optimizer = tf.keras.optimizers.Adam()

def train(dataset):
    for batch in dataset:
        loss = train_step(batch)
        if optimizer.iterations % 100 == 0:  #!
            print("step", float(loss))
