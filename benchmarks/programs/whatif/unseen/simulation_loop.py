"""A cloth of springs moved by Euler steps: many small eager ops, no gradient."""

import sys

import tensorflow as tf

REPAIRED = set(sys.argv[1:])
place = tf.Variable(tf.random.stateless_normal([40, 40, 3], [5, 6]))
speed = tf.Variable(tf.zeros([40, 40, 3]))


def pull(p):
    force = tf.zeros_like(p)
    for axis in (0, 1):
        for shift in (1, -1):
            way = tf.roll(p, shift, axis) - p
            length = tf.norm(way, axis=-1, keepdims=True)
            force += way * (length - 0.5) / (length + 1e-3)
    return force


def move():
    speed.assign(0.99 * speed + 0.01 * pull(place))
    place.assign_add(0.01 * speed)


if "launch-bound" in REPAIRED:
    move = tf.function(move)
for step in range(400):
    move()  # stall: launch-bound
