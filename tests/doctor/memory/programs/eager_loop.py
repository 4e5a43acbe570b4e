import numpy as np
import tensorflow as tf

first = tf.Variable(tf.random.normal([256, 1024]) * 0.01)
second = tf.Variable(tf.random.normal([1024, 256]) * 0.01)
x = tf.constant(np.random.default_rng(0).random((2048, 256), dtype="float32"))

for _ in range(60):
    with tf.GradientTape() as tape:
        hidden = tf.nn.relu(tf.matmul(x, first))
        loss = tf.reduce_mean((tf.matmul(hidden, second) - x) ** 2)
    gradients = tape.gradient(loss, [first, second])
    for variable, gradient in zip([first, second], gradients, strict=True):
        variable.assign_sub(0.1 * gradient)
