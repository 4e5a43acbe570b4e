import tensorflow as tf

mean = tf.keras.metrics.Mean()
dataset = tf.data.Dataset.from_tensor_slices((features, labels)).batch(32).prefetch(2)

def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    mean.update_state(loss)

# One call is a whole epoch.
@tf.function
def train_epoch():
    for x, y in dataset:
        step(x, y)

for _ in range(10):
    train_epoch()
    print(mean.result().numpy())
