import tensorflow as tf

@tf.function
def grad(model, x, y):
    with tf.GradientTape() as tape:
        value = tf.reduce_mean(tf.abs(model(x) - y))
    return value, tape.gradient(value, model.trainable_variables)

for x, y in batches:
    value, grads = grad(model, x, y)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
