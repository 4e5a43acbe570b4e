"""Reading the loss at every step makes the device and the host take turns.

Execution is asynchronous here, as it is on an accelerator: a call returns at once, and the host could fetch the
next rows while the device computes. `loss.numpy()` waits for the step to end. The repair reads every 50 steps.
"""

import time

import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.experimental.set_synchronous_execution(False)
tf.keras.utils.set_random_seed(0)

inputs = tf.random.normal([4096, 1024])
targets = tf.reduce_sum(inputs[:, :8], axis=1, keepdims=True)
model = tf.keras.Sequential([tf.keras.layers.Dense(1024, activation="relu"), tf.keras.layers.Dense(1)])
model.build([None, 1024])
optimizer = tf.keras.optimizers.SGD(0.001)


@tf.function
def train_step(start):
    x, y = inputs[start : start + 256], targets[start : start + 256]
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return loss


def next_start(step):
    """Ask a slow queue which rows come next."""
    time.sleep(0.010)
    return tf.constant(step % 16 * 256)


for step in range(200):
    loss = train_step(next_start(step))
    if loss.numpy() > 1e6:  # <-- the stall
        raise SystemExit(f"diverged at step {step}")

print(f"loss {loss.numpy():.3f}")
