"""Deep Q-learning in a windy grid world: epsilon-greedy acting, replay memory, target network."""

import random
import sys
from collections import deque

import numpy as np
import tensorflow as tf
from tensorflow import keras

FIX = set(sys.argv[1:])
keras.utils.set_random_seed(44)
SIDE, ACTIONS, STEPS, BATCH, GAMMA = 8, 4, 260, 256, 0.95
MOVES = [(0, 1), (0, -1), (1, 0), (-1, 0)]


class WindyGrid:
    def __init__(self):
        self.rng = random.Random(44)
        self.reset()

    def reset(self):
        self.at, self.goal, self.t = (0, 0), (self.rng.randrange(4, SIDE), self.rng.randrange(4, SIDE)), 0
        return self.observe()

    def observe(self):
        board = np.zeros((2, SIDE, SIDE), "float32")
        board[0][self.at] = 1.0
        board[1][self.goal] = 1.0
        return board.ravel()

    def step(self, action):
        dx, dy = MOVES[action]
        wind = 1 if self.rng.random() < 0.1 else 0
        self.at = (min(max(self.at[0] + dx, 0), SIDE - 1), min(max(self.at[1] + dy + wind, 0), SIDE - 1))
        self.t += 1
        won = self.at == self.goal
        return self.observe(), 1.0 if won else -0.02, won or self.t >= 40


def q_network():
    return keras.Sequential(
        [keras.Input((2 * SIDE * SIDE,)), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(512, activation="relu"), keras.layers.Dense(ACTIONS)]
    )


online, target = q_network(), q_network()
target.set_weights(online.get_weights())
adam = keras.optimizers.Adam(5e-4)
huber = keras.losses.Huber()
q_values = tf.function(lambda s: online(s, training=False))


@tf.function
def learn(s, a, r, s2, done):
    best = tf.reduce_max(target(s2), axis=1)
    goal = r + GAMMA * (1.0 - done) * best
    with tf.GradientTape() as tape:
        q = tf.gather(online(s, training=True), a, axis=1, batch_dims=1)
        loss = huber(goal, q)
    adam.apply_gradients(zip(tape.gradient(loss, online.trainable_variables), online.trainable_variables))
    return loss


def choose(state, epsilon):
    if random.random() < epsilon:
        return random.randrange(ACTIONS)
    if "predict-in-loop" in FIX:
        q = q_values(tf.constant(state[None])).numpy()
    else:
        q = online.predict(state[None], verbose=0)  # stall: predict-in-loop
    return int(q[0].argmax())


env, memory = WindyGrid(), deque(maxlen=5000)
# Fill the memory with random play first.
state = env.reset()
for _ in range(1000):
    action = random.randrange(ACTIONS)
    after, reward, done = env.step(action)
    memory.append((state, action, reward, after, float(done)))
    state = env.reset() if done else after

state, wins, played = env.reset(), 0, 0
for step in range(STEPS):
    action = choose(state, max(0.05, 0.3 - step / 600))
    after, reward, done = env.step(action)
    memory.append((state, action, reward, after, float(done)))
    state = after
    if done:
        played, wins, state = played + 1, wins + (reward > 0), env.reset()
    s, a, r, s2, d = zip(*random.sample(memory, BATCH))
    loss = learn(np.stack(s), np.array(a, "int32"), np.array(r, "float32"), np.stack(s2), np.array(d, "float32"))
    if step % 60 == 0:
        target.set_weights(online.get_weights())
        print("step", step, "huber", round(float(loss), 5), "episodes", played, "won", wins)
print("end huber", round(float(loss), 5))
