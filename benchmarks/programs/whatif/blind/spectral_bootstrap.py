"""Spectral clustering whose stability is judged by bootstrap: leading eigenvectors by orthogonal iteration."""

import sys

import tensorflow as tf

fix = sys.argv[1:]
N, K, ROUNDS, SWEEPS = 500, 3, 190, 60
g = tf.random.Generator.from_seed(123)


def three_arcs():
    label = tf.range(N) % 3
    angle = g.uniform([N], 0.0, 1.5) + 2.1 * tf.cast(label, tf.float32)
    radius = 1.0 + 0.05 * g.normal([N])
    return tf.stack([radius * tf.cos(angle), radius * tf.sin(angle)], 1), label


points, labels = three_arcs()


def leading_vectors(x, width, q):
    sq = tf.reduce_sum((x[:, None] - x[None]) ** 2, axis=-1)
    w = tf.exp(-sq / (2 * width**2))
    s = tf.math.rsqrt(tf.reduce_sum(w, axis=1))
    lap = s[:, None] * w * s[None]
    for _ in tf.range(SWEEPS):
        q, _ = tf.linalg.qr(lap @ q)
    ritz = tf.linalg.diag_part(tf.matmul(q, lap @ q, transpose_a=True))
    return q / tf.norm(q, axis=1, keepdims=True), ritz


def agreement(emb, rows):
    same = tf.cast(tf.gather(labels, rows)[:, None] == tf.gather(labels, rows)[None], tf.float32)
    near = tf.cast(tf.matmul(emb, emb, transpose_b=True) > 0.5, tf.float32)
    return tf.reduce_mean(tf.cast(same == near, tf.float32))


compiled = tf.function(leading_vectors)
scores, gaps = [], []
for b in range(ROUNDS):
    rows = g.uniform([N], 0, N, tf.int32)
    sample = tf.gather(points, rows)
    q0 = g.normal([N, K])
    width = tf.constant(0.15) + 0.001 * b
    if "tf-function-in-loop" in fix:
        emb, ritz = compiled(sample, width, q0)
    else:
        solve = tf.function(lambda q: leading_vectors(sample, width, q))  # stall: tf-function-in-loop
        emb, ritz = solve(q0)
    scores.append(agreement(emb, rows))
    gaps.append(ritz[-1])
    if b % 38 == 0:
        tf.print("bootstrap", b, "agreement", scores[-1], "third ritz value", ritz[-1])
tf.print("mean agreement", tf.reduce_mean(tf.stack(scores)), "mean third ritz value", tf.reduce_mean(tf.stack(gaps)))
