"""A transformer block of plain layers, trained op by op; its loss is printed now and then."""

import sys

import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(3)
layers = tf.keras.layers
tokens = tf.random.normal([8, 32, 48])
targets = tf.random.normal([8, 32, 48])
attention = layers.MultiHeadAttention(4, 12)
norms = [layers.LayerNormalization(), layers.LayerNormalization()]
wide, narrow = layers.Dense(96, activation="gelu"), layers.Dense(48)
optimizer = tf.keras.optimizers.SGD(1e-3)


def forward(x):
    x = norms[0](x + attention(x, x))
    return norms[1](x + narrow(wide(x)))


forward(tokens)
weights = [w for layer in (attention, *norms, wide, narrow) for w in layer.trainable_variables]


def train_step(x, y):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        loss = tf.reduce_mean(tf.square(forward(x) - y))
    optimizer.apply(tape.gradient(loss, weights), weights)
    return loss


if "eager-train-step" in REPAIRED:
    train_step = tf.function(train_step)
for step in range(120):
    loss = train_step(tokens, targets)
    if step % 40 == 0:
        print(step, float(loss))
