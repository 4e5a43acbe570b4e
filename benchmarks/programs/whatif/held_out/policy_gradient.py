"""REINFORCE on a bandit with memory: acts by an eager model call, learns an episode at a time under a tape."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
chance = np.random.default_rng(0)
model = tf.keras.Sequential(
    [tf.keras.Input((6,)), tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(3)]
)
optimizer = tf.keras.optimizers.Adam(1e-2)


def act(x):
    return model(x)  # stall: launch-bound


def learn(states, actions, gains):
    with tf.GradientTape() as tape:  # stall: eager-train-step
        log_odds = tf.nn.log_softmax(model(states))
        chosen = tf.gather(log_odds, actions, batch_dims=1)
        loss = -tf.reduce_mean(chosen * gains)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


if "launch-bound" in REPAIRED:
    act = tf.function(act, input_signature=[tf.TensorSpec([1, 6])])
if "eager-train-step" in REPAIRED:
    learn = tf.function(learn)
for step in range(20):
    states, actions, rewards = [], [], []
    state = chance.normal(size=6).astype("float32")
    for _ in range(15):
        logits = act(tf.constant(state[None])).numpy()[0]
        odds = np.exp(logits - logits.max())
        action = int(chance.choice(3, p=odds / odds.sum()))
        states.append(state)
        actions.append(action)
        rewards.append(float(state[action]))
        state = np.roll(state, 1) + chance.normal(0, 0.1, 6).astype("float32")
    gains = np.cumsum(rewards[::-1])[::-1].astype("float32")
    learn(tf.constant(np.array(states)), tf.constant(actions), tf.constant(gains))
