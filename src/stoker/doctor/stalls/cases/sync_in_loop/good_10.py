import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.Adam()
@tf.function
def train_epoch(x, y):
    total = 0.0
    for i in tf.range(100):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x) - y))
        g = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(g, model.trainable_variables))
        total += loss
    return total / 100.0
x = tf.random.normal([64, 4]); y = tf.random.normal([64, 1])
for epoch in range(10):
    loss = train_epoch(x, y)
    print(epoch, float(loss))
