"""Word vectors by skip-gram with negative sampling on a made-up corpus, a handful of word pairs per update."""

import sys

import numpy as np
import tensorflow as tf

REPAIRED = set(sys.argv[1:])
VOCAB, DIM, PAIRS, NEG, STEPS = 500, 16, 8, 4, 12000

rng = np.random.default_rng(2)
topic = rng.integers(0, 20, size=6000)
corpus = (topic.repeat(5) * 25 + rng.integers(0, 25, size=30000)).astype("int32")
at = rng.integers(2, len(corpus) - 2, size=(STEPS, PAIRS))
centres = tf.constant(corpus[at])
contexts = tf.constant(corpus[at + rng.choice([-2, -1, 1, 2], size=at.shape)])
negatives = tf.constant(rng.integers(0, VOCAB, size=(STEPS, PAIRS, NEG)), tf.int32)


class SkipGram(tf.Module):
    def __init__(self):
        super().__init__()
        gen = tf.random.Generator.from_seed(1)
        self.inside = tf.Variable(gen.normal([VOCAB, DIM]) * 0.1)
        self.outside = tf.Variable(gen.normal([VOCAB, DIM]) * 0.1)

    def update(self, k):
        c, o, n = centres[k], contexts[k], negatives[k]
        with tf.GradientTape() as tape:
            vc = tf.gather(self.inside, c)
            good = tf.reduce_sum(vc * tf.gather(self.outside, o), axis=1)
            bad = tf.einsum("pd,pnd->pn", vc, tf.gather(self.outside, n))
            loss = -tf.reduce_mean(tf.math.log_sigmoid(good) + tf.reduce_sum(tf.math.log_sigmoid(-bad), axis=1))
        for var, g in zip([self.inside, self.outside], tape.gradient(loss, [self.inside, self.outside]), strict=True):
            var.scatter_sub(tf.IndexedSlices(0.2 * g.values, g.indices))
        return loss

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def single(self, k):
        return self.update(k)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.int32)])
    def block(self, begin, end):
        total = tf.constant(0.0)
        for k in tf.range(begin, end):
            total += self.update(k)
        return total


model = SkipGram()
total = tf.constant(0.0)
stride = 500 if "launch-bound" in REPAIRED else 1
for step in range(0, STEPS, stride):
    if stride > 1:
        total += model.block(tf.constant(step), tf.constant(step + stride))
    else:
        total += model.single(tf.constant(step))  # stall: launch-bound
    if step % 3000 == 0:
        print("update", step)
print("mean loss", float(total) / STEPS)
