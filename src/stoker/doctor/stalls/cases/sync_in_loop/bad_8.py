import tensorflow as tf

optimizer = tf.keras.optimizers.Adam(learning_rate=1e-3)

@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

rates = []
for x, y in dataset:
    step(x, y)
    rates.append(optimizer.learning_rate.numpy())  #!
