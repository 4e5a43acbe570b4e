import tensorflow as tf

@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

for epoch in range(10):
    for x, y in dataset:
        train_step(x, y)
    # A few pictures after each epoch.
    for i in range(len(pictures)):
        picture = tf.expand_dims(pictures[i], 0)
        tf.summary.image("picture", picture, step=optimizer.iterations.numpy())
