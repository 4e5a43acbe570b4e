"""A compiled leapfrog integrator follows three planets around a star and reports the energy drift."""

import sys

import tensorflow as tf

REPAIRED = set(sys.argv[1:])
DT = tf.constant(1e-3)
mass = tf.constant([1.0, 1e-3, 5e-4, 2e-3])
pos = tf.constant([[0.0, 0, 0], [1.0, 0, 0], [0, 1.6, 0.1], [-2.4, 0, 0]])
vel = tf.constant([[0.0, 0, 0], [0, 1.0, 0], [-0.79, 0, 0], [0, -0.645, 0.02]])


def acceleration(p):
    d = p[None, :, :] - p[:, None, :]
    inv = tf.math.rsqrt(tf.reduce_sum(d * d, axis=-1) + 1e-4)
    return tf.einsum("ij,ijk->ik", mass[None, :] * inv**3, d)


def energy(p, v):
    d = p[None, :, :] - p[:, None, :]
    r = tf.sqrt(tf.reduce_sum(d * d, axis=-1) + 1e-4)
    pair = mass[:, None] * mass[None, :] / r
    potential = -0.5 * tf.reduce_sum(pair - tf.linalg.diag(tf.linalg.diag_part(pair)))
    return 0.5 * tf.reduce_sum(mass[:, None] * v * v) + potential


def leapfrog(p, v):
    v = v + 0.5 * DT * acceleration(p)
    p = p + DT * v
    v = v + 0.5 * DT * acceleration(p)
    return p, v


@tf.function
def advance(p, v):
    return leapfrog(p, v)


@tf.function
def advance_many(p, v, n):
    for _ in tf.range(n):
        p, v = leapfrog(p, v)
    return p, v


e0 = energy(pos, vel)
if "launch-bound" in REPAIRED:
    for step in range(0, 24000, 2000):
        pos, vel = advance_many(pos, vel, tf.constant(2000))
        print("after", step + 2000, "drift", float(energy(pos, vel) - e0))
else:
    for step in range(24000):
        pos, vel = advance(pos, vel)  # stall: launch-bound
        if (step + 1) % 2000 == 0:
            print("after", step + 1, "drift", float(energy(pos, vel) - e0))
