"""Online mini-batch k-means (Sculley 2010) in pure TensorFlow over a resident table of points."""

import sys

import tensorflow as tf

REPAIRS = set(sys.argv[1:])
K, DIM, BATCH, POINTS = 16, 8, 48, 20000
STEPS, CHUNK = 60000, 10000

gen = tf.random.Generator.from_seed(3)
truth = gen.normal([K, DIM]) * 4.0
table = tf.gather(truth, gen.uniform([POINTS], 0, K, tf.int32)) + gen.normal([POINTS, DIM])

centers = tf.Variable(table[:K] + 0.5 * gen.normal([K, DIM]))
counts = tf.Variable(tf.ones([K]))
clock = tf.Variable(0, dtype=tf.int64)
inertia = tf.Variable(0.0)


def update():
    rows = tf.random.stateless_uniform([BATCH], tf.stack([clock, 11]), 0, POINTS, tf.int32)
    x = tf.gather(table, rows)
    d = tf.reduce_sum((x[:, None, :] - centers[None]) ** 2, axis=-1)
    hit = tf.one_hot(tf.argmin(d, axis=1), K)
    n = tf.reduce_sum(hit, axis=0)
    counts.assign_add(n)
    mean_pull = tf.matmul(hit, x, transpose_a=True) - n[:, None] * centers
    centers.assign_add(mean_pull / counts[:, None])
    inertia.assign(0.999 * inertia + 0.001 * tf.reduce_mean(tf.reduce_min(d, axis=1)))
    clock.assign_add(1)


@tf.function
def one_step():
    update()


@tf.function
def many_steps(n):
    for _ in tf.range(n):
        update()


if "launch-bound" in REPAIRS:
    for _ in range(STEPS // CHUNK):
        many_steps(tf.constant(CHUNK))
        tf.print("seen", clock, "batches; smoothed inertia", inertia)
else:
    for i in range(STEPS):
        one_step()  # stall: launch-bound
        if (i + 1) % CHUNK == 0:
            tf.print("seen", clock, "batches; smoothed inertia", inertia)

full = tf.reduce_min(tf.reduce_sum((table[:, None, :] - centers[None]) ** 2, axis=-1), axis=1)
print("full inertia", float(tf.reduce_mean(full)))
