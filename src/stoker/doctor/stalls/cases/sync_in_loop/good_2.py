import tensorflow as tf

mean_loss = tf.keras.metrics.Mean()

def train(dataset, epochs):
    for epoch in range(epochs):
        for batch in dataset:
            mean_loss.update_state(train_step(batch))
        print(epoch, mean_loss.result().numpy())
        mean_loss.reset_state()
