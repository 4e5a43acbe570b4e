"""A discrete autoencoder with Gumbel-softmax codes is trained while its temperature is slowly lowered."""

import math
import sys

import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(14)
K, CODES = 8, 4

encoder = tf.keras.Sequential(
    [tf.keras.Input((40,)), tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(K * CODES)]
)
decoder = tf.keras.Sequential(
    [tf.keras.Input((K * CODES,)), tf.keras.layers.Dense(64, activation="relu"), tf.keras.layers.Dense(40)]
)
weights = encoder.trainable_weights + decoder.trainable_weights
optimizer = tf.keras.optimizers.RMSprop(1e-3)
optimizer.build(weights)
basis = tf.random.stateless_normal([6, 40], seed=[1, 1])
data = tf.matmul(tf.random.stateless_normal([1024, 6], seed=[1, 2]), basis)


@tf.function
def train_step(x, seed, temperature):
    u = tf.random.stateless_uniform([tf.shape(x)[0], CODES, K], seed=seed, minval=1e-6, maxval=1.0)
    with tf.GradientTape() as tape:
        logits = tf.reshape(encoder(x), [-1, CODES, K])
        soft = tf.nn.softmax((logits - tf.math.log(-tf.math.log(u))) / temperature)
        rebuilt = decoder(tf.reshape(soft, [-1, CODES * K]))
        loss = tf.reduce_mean(tf.square(rebuilt - x))
    gradients = tape.gradient(loss, weights)
    optimizer.apply_gradients(zip(gradients, weights, strict=True))
    return loss


for step in range(100):
    temperature = max(0.3, 2.0 * math.exp(-0.01 * step))
    first = 64 * (step % 16)
    batch, seed = data[first : first + 64], tf.constant([step, 3])
    if "retrace-python-arg" in REPAIRED:
        loss = train_step(batch, seed, tf.constant(temperature, tf.float32))
    else:
        loss = train_step(batch, seed, temperature)  # stall: retrace-python-arg
    if step % 25 == 0:
        print(f"{step:4d} temperature {temperature:.3f} loss {loss.numpy():.4f}")
