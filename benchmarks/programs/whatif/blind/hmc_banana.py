"""Hamiltonian Monte Carlo on the banana-shaped (Rosenbrock) density, with a hand-written leapfrog integrator."""

import argparse

import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("repair", nargs="*")
repair = parser.parse_args().repair

SAMPLES, CHAINS, LEAPFROG, EPS = 48000, 8, 4, tf.constant(0.08)


class Sampler(tf.Module):
    def __init__(self):
        super().__init__()
        self.q = tf.Variable(tf.zeros([CHAINS, 2]))
        self.n = tf.Variable(0)
        self.accepted = tf.Variable(0.0)
        self.first = tf.Variable(tf.zeros([2]))
        self.second = tf.Variable(tf.zeros([2]))

    @staticmethod
    def energy(q):
        x, y = q[:, 0], q[:, 1]
        return 0.5 * (1.0 - x) ** 2 + 2.0 * (y - x**2) ** 2

    @staticmethod
    def grad(q):
        x, y = q[:, 0], q[:, 1]
        bend = y - x**2
        return tf.stack([x - 1.0 - 8.0 * x * bend, 4.0 * bend], axis=1)

    def transition(self):
        seed = tf.stack([self.n, 29])
        p0 = tf.random.stateless_normal([CHAINS, 2], seed)
        q, p = self.q.read_value(), p0 - 0.5 * EPS * self.grad(self.q)
        for i in range(LEAPFROG):
            q = q + EPS * p
            p = p - (EPS if i < LEAPFROG - 1 else 0.5 * EPS) * self.grad(q)
        before = self.energy(self.q) + 0.5 * tf.reduce_sum(p0**2, axis=1)
        after = self.energy(q) + 0.5 * tf.reduce_sum(p**2, axis=1)
        u = tf.random.stateless_uniform([CHAINS], seed + 1000003)
        keep = tf.math.log(u) < before - after
        self.q.assign(tf.where(keep[:, None], q, self.q))
        self.accepted.assign_add(tf.reduce_mean(tf.cast(keep, tf.float32)))
        self.first.assign_add(tf.reduce_mean(self.q, axis=0))
        self.second.assign_add(tf.reduce_mean(self.q**2, axis=0))
        self.n.assign_add(1)

    @tf.function
    def step(self):
        self.transition()

    @tf.function
    def run(self, count):
        i = tf.constant(0)
        while i < count:
            self.transition()
            i += 1


def report(s):
    n = tf.cast(s.n, tf.float32)
    mean = s.first / n
    print(int(s.n), "acceptance", round(float(s.accepted / n), 3), "mean", mean.numpy(), "var", (s.second / n - mean**2).numpy())


sampler = Sampler()
for block in range(4):
    if "launch-bound" in repair:
        sampler.run(tf.constant(SAMPLES // 4))
    else:
        for _ in range(SAMPLES // 4):
            sampler.step()  # stall: launch-bound
    report(sampler)
