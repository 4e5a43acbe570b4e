"""A deep Q-learning agent with replay memory looks for the treasure in a six by six grid world."""

import random
import sys
from collections import deque

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
tf.keras.utils.set_random_seed(33)
SIZE, GOAL, PITS = 6, (5, 5), {(2, 2), (3, 4), (1, 4)}
MOVES = [(0, 1), (1, 0), (0, -1), (-1, 0)]


def observe(cell):
    board = np.zeros(SIZE * SIZE, np.float32)
    board[cell[0] * SIZE + cell[1]] = 1.0
    return board


def go(cell, action):
    dr, dc = MOVES[action]
    cell = (min(max(cell[0] + dr, 0), SIZE - 1), min(max(cell[1] + dc, 0), SIZE - 1))
    if cell == GOAL:
        return cell, 1.0, True
    return (cell, -1.0, True) if cell in PITS else (cell, -0.01, False)


hidden = [tf.keras.layers.Dense(64, activation="relu") for _ in range(2)]
q = tf.keras.Sequential([tf.keras.Input((SIZE * SIZE,)), *hidden, tf.keras.layers.Dense(4)])
opt = tf.keras.optimizers.Adam(1e-3)
q_values = tf.function(q)


def learn(s, a, r, s2, done):
    target = r + 0.95 * (1.0 - done) * tf.reduce_max(q(s2), axis=1)
    with tf.GradientTape() as tape:  # stall: eager-train-step
        chosen = tf.reduce_sum(q(s) * tf.one_hot(a, 4), axis=1)
        loss = tf.reduce_mean(tf.square(tf.stop_gradient(target) - chosen))
    opt.apply_gradients(zip(tape.gradient(loss, q.trainable_variables), q.trainable_variables, strict=True))


if "eager-train-step" in REPAIRED:
    learn = tf.function(learn)

memory, cell, wins = deque(maxlen=2000), (0, 0), 0
for step in range(260):
    if random.random() < max(0.1, 1.0 - step / 60):
        action = random.randrange(4)
    elif "predict-in-loop" in REPAIRED:
        action = int(tf.argmax(q_values(tf.constant(observe(cell)[None]))[0]))
    else:
        action = int(np.argmax(q.predict(observe(cell)[None], verbose=0)[0]))  # stall: predict-in-loop
    after, reward, done = go(cell, action)
    memory.append((observe(cell), action, reward, observe(after), float(done)))
    wins += reward == 1.0
    cell = (0, 0) if done else after
    if len(memory) >= 32:
        s, a, r, s2, d = zip(*random.sample(memory, 32), strict=True)
        learn(
            tf.constant(np.stack(s)),
            tf.constant(a),
            tf.constant(r),
            tf.constant(np.stack(s2)),
            tf.constant(d, tf.float32),
        )
    if step % 50 == 0:
        print("move", step, "treasures", wins)
