"""An autoencoder and a critic, each with its own eager function, optimizer and read of its loss."""

import sys

import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(12)
dense = tf.keras.layers.Dense
coder = tf.keras.Sequential([tf.keras.Input((60,)), dense(24, "relu"), dense(60)])
critic = tf.keras.Sequential([tf.keras.Input((60,)), dense(32, "relu"), dense(1)])
optimizers = [tf.keras.optimizers.Adam(1e-3), tf.keras.optimizers.SGD(1e-2)]
data = tf.random.normal([64, 60])


def train_coder(x):
    with tf.GradientTape() as tape:  # stall: eager-train-step/coder
        made = coder(x, training=True)
        loss = tf.reduce_mean(tf.square(made - x)) - 0.01 * tf.reduce_mean(critic(made))
    gradients = tape.gradient(loss, coder.trainable_variables)
    optimizers[0].apply_gradients(zip(gradients, coder.trainable_variables))
    return loss


def train_critic(x):
    with tf.GradientTape() as tape:  # stall: eager-train-step/critic
        loss = tf.reduce_mean(critic(coder(x)) - critic(x))
    gradients = tape.gradient(loss, critic.trainable_variables)
    optimizers[1].apply_gradients(zip(gradients, critic.trainable_variables))
    return loss


if "eager-train-step/coder" in REPAIRED:
    train_coder = tf.function(train_coder)
if "eager-train-step/critic" in REPAIRED:
    train_critic = tf.function(train_critic)
losses = []
for step in range(120):
    losses.append((float(train_coder(data)), float(train_critic(data))))
