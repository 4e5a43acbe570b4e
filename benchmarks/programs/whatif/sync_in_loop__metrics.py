"""Loss and accuracy are read at every step of an asynchronous loop; every 50th would do."""

import time

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.experimental.set_synchronous_execution(False)
tf.keras.utils.set_random_seed(0)

inputs = tf.random.normal([512, 768])
labels = tf.cast(inputs[:, 0] > 0, tf.int64)
model = tf.keras.Sequential([tf.keras.layers.Dense(768, activation="relu"), tf.keras.layers.Dense(2)])
model.build([None, 768])
optimizer = tf.keras.optimizers.SGD(0.001)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss, tf.reduce_mean(tf.cast(tf.argmax(logits, 1) == y, tf.float32))


EVERY = 1
for step in range(150):
    time.sleep(0.006)
    loss, accuracy = train_step(inputs, labels)
    if step % EVERY == 0:
        best = max(float(accuracy), 1 - float(loss))

print(f"loss {float(loss):.2f}")
