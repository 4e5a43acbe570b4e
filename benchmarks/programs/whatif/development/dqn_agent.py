"""A DQN agent on a pole-balancing environment: acting through predict(), learning under an eager tape."""

import random
import sys
from collections import deque

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
random.seed(0)
tf.keras.utils.set_random_seed(0)


class Pole:
    """Four numbers and a push to the left or to the right."""

    def reset(self):
        self.state = np.random.uniform(-0.05, 0.05, 4).astype("float32")
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        force = 10.0 if action else -10.0
        pull = (force + 0.05 * spin**2 * np.sin(angle)) / 1.1
        turn = (9.8 * np.sin(angle) - np.cos(angle) * pull) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
        self.state = np.array(
            [x + 0.02 * v, v + 0.02 * pull, angle + 0.02 * spin, spin + 0.02 * turn], "float32"
        )
        return self.state, 1.0, bool(abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21)


def network():
    return tf.keras.Sequential(
        [tf.keras.Input((4,)), tf.keras.layers.Dense(48, activation="relu"), tf.keras.layers.Dense(2)]
    )


online, target = network(), network()
target.set_weights(online.get_weights())
optimizer = tf.keras.optimizers.Adam(1e-3)


@tf.function(input_signature=[tf.TensorSpec([None, 4], tf.float32)])
def values(states):
    return online(states)


def learn(states, actions, rewards, following, ended):
    best = tf.reduce_max(target(following), axis=1)
    wanted = rewards + 0.99 * best * (1.0 - ended)
    with tf.GradientTape() as tape:  # stall: eager-train-step
        chosen = tf.reduce_sum(online(states) * tf.one_hot(actions, 2), axis=1)
        loss = tf.reduce_mean(tf.square(wanted - chosen))
    gradients = tape.gradient(loss, online.trainable_variables)
    optimizer.apply_gradients(zip(gradients, online.trainable_variables))


if "eager-train-step" in REPAIRED:
    learn = tf.function(learn)

pole, memory = Pole(), deque(maxlen=2000)
state = pole.reset()
for _ in range(64):
    following, reward, ended = pole.step(random.randrange(2))
    memory.append((state, 0, reward, following, float(ended)))
    state = pole.reset() if ended else following

for step in range(16):
    row = state[np.newaxis]
    if "predict-in-loop" in REPAIRED:
        q = values(row).numpy()
    else:
        q = online.predict(row, verbose=0)  # stall: predict-in-loop
    action = int(np.argmax(q))
    following, reward, ended = pole.step(action)
    memory.append((state, action, reward, following, float(ended)))
    state = pole.reset() if ended else following
    batch = [np.array(column) for column in zip(*random.sample(memory, 32))]
    learn(*(tf.constant(column, tf.int32 if column.dtype.kind == "i" else tf.float32) for column in batch))
