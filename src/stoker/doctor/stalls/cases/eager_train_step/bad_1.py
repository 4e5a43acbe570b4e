import tensorflow as tf

optimizer = tf.keras.optimizers.SGD()

def train_step(model, x, y):
    with tf.GradientTape() as tape:  #!
        loss = tf.reduce_mean(tf.square(model(x) - y))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss

for x, y in dataset:
    train_step(model, x, y)
