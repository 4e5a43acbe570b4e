"""An actor and a critic in a corridor: both asked through predict() at every move, one update for each move."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(0)
chance = np.random.default_rng(0)


class Corridor:
    """Walk to the right end; cells look alike but for some noise."""

    def reset(self):
        self.place = 0
        return self._seen()

    def step(self, action):
        self.place = max(0, self.place + (1 if action else -1))
        return self._seen(), float(self.place == 9) - 0.01, self.place == 9

    def _seen(self):
        return (np.eye(10)[self.place] + chance.normal(0, 0.05, 10)).astype("float32")


def network(outputs):
    return tf.keras.Sequential(
        [tf.keras.Input((10,)), tf.keras.layers.Dense(64, activation="tanh"), tf.keras.layers.Dense(outputs)]
    )


actor, critic = network(2), network(1)
optimizer = tf.keras.optimizers.Adam(1e-3)
variables = actor.trainable_variables + critic.trainable_variables


@tf.function(input_signature=[tf.TensorSpec([1, 10])])
def policy(x):
    return actor(x)


@tf.function(input_signature=[tf.TensorSpec([1, 10])])
def worth(x):
    return critic(x)


@tf.function
def update(x, action, advantage):
    with tf.GradientTape() as tape:
        chosen = tf.nn.log_softmax(actor(x))[:, action]
        loss = -tf.reduce_mean(chosen * advantage) + tf.reduce_mean(tf.square(critic(x) - advantage))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))


world = Corridor()
seen = world.reset()
for step in range(18):
    row = seen[None]
    if "predict-in-loop/actor" in REPAIRED:
        logits = policy(row).numpy()[0]
    else:
        logits = actor.predict(row, verbose=0)[0]  # stall: predict-in-loop/actor
    if "predict-in-loop/critic" in REPAIRED:
        value = float(worth(row).numpy()[0, 0])
    else:
        value = float(critic.predict(row, verbose=0)[0, 0])  # stall: predict-in-loop/critic
    odds = np.exp(logits - logits.max())
    action = int(chance.random() > odds[0] / odds.sum())
    seen, reward, ended = world.step(action)
    update(tf.constant(row), tf.constant(action), tf.constant(reward - value))
    if ended:
        seen = world.reset()
