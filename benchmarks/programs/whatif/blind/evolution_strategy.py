"""OpenAI-style evolution strategy with a shared noise table: a policy is evolved for batches of a tracking task."""

import sys

import numpy as np
import tensorflow as tf

OBS, HID, ACT = 32, 64, 8
SIZE = OBS * HID + HID * ACT
POP, GENERATIONS, SIGMA, LR = 256, 1500, 0.1, 0.004
TABLE = 2048


def make_world(rng):
    obs = rng.standard_normal((12, OBS)).astype("float32")
    target = np.tanh(obs @ rng.standard_normal((OBS, ACT)) * 0.5).astype("float32")
    return tf.constant(obs), tf.constant(target)


def fitness(flat, obs, target):
    w1 = tf.reshape(flat[:, : OBS * HID], [-1, OBS, HID])
    w2 = tf.reshape(flat[:, OBS * HID :], [-1, HID, ACT])
    hidden = tf.tanh(tf.einsum("no,poh->pnh", obs, w1))
    action = tf.einsum("pnh,pha->pna", hidden, w2)
    return -tf.reduce_mean((action - target) ** 2, axis=[1, 2])


def build(obs, target, theta):
    @tf.function
    def generation(eps):
        flat = theta[None] + SIGMA * eps
        score = fitness(flat, obs, target)
        centred = (score - tf.reduce_mean(score)) / (tf.math.reduce_std(score) + 1e-8)
        theta.assign_add(LR * tf.linalg.matvec(eps, centred, transpose_a=True) / POP)
        return tf.reduce_mean(score)

    return generation


def main(fixed):
    rng = np.random.default_rng(404)
    obs, target = make_world(rng)
    theta = tf.Variable(0.1 * rng.standard_normal(SIZE).astype("float32"))
    noise = rng.standard_normal((TABLE, SIZE))
    picks = rng.integers(0, TABLE, (GENERATIONS, POP // 2))
    generation = build(obs, target, theta)

    if "numpy-feed-in-loop" in fixed:
        noise_t = tf.constant(noise, tf.float32)
        picks_t = tf.constant(picks, tf.int32)

        @tf.function
        def from_table(g):
            half = tf.gather(noise_t, picks_t[g])
            return generation(tf.concat([half, -half], axis=0))

    for g in range(GENERATIONS):
        if "numpy-feed-in-loop" in fixed:
            mean = from_table(tf.constant(g))
        else:
            half = noise[picks[g]]
            eps = np.concatenate([half, -half])
            mean = generation(tf.convert_to_tensor(eps, dtype=tf.float32))  # stall: numpy-feed-in-loop
        if g % 250 == 0:
            tf.print("generation", g, "mean fitness", mean)
    tf.print("last", mean)


main(sys.argv[1:])
