"""A graph convolutional network regresses a property of random molecules; graphs are packed into one big matrix a batch."""

import sys

import numpy as np
import tensorflow as tf

REPAIR = set(sys.argv[1:])
tf.keras.utils.set_random_seed(14)
rng = np.random.default_rng(14)
GRAPHS_A_BATCH, BATCHES, PASSES, FEATURES, HIDDEN = 8, 60, 11, 16, 128


def random_molecule():
    n = int(rng.integers(15, 70))
    adj = np.eye(n, dtype="float32")
    for i in range(1, n):
        j = int(rng.integers(max(0, i - 4), i))
        adj[i, j] = adj[j, i] = 1.0
    scale = adj.sum(1) ** -0.5
    x = rng.standard_normal((n, FEATURES)).astype("float32")
    norm = scale[:, None] * adj * scale[None]
    return x, norm, np.tanh(norm @ x)[:, :4].mean()


def pack(molecules):
    total = sum(len(m[0]) for m in molecules)
    adj = np.zeros((total, total), "float32")
    owner = np.zeros(total, "int32")
    at = 0
    for k, (x, a, _) in enumerate(molecules):
        adj[at : at + len(x), at : at + len(x)] = a
        owner[at : at + len(x)] = k
        at += len(x)
    return np.concatenate([m[0] for m in molecules]), adj, owner, np.array([m[2] for m in molecules], "float32")


def pad(batch, size):
    x, adj, owner, target = batch
    extra = size - len(x)
    # Padding nodes have no edges and belong to graph number GRAPHS_A_BATCH, which the read-out drops.
    return np.pad(x, ((0, extra), (0, 0))), np.pad(adj, ((0, extra), (0, extra))), np.pad(owner, (0, extra), constant_values=GRAPHS_A_BATCH), target


class GCN(tf.Module):
    def __init__(self):
        super().__init__()
        sizes = [FEATURES, HIDDEN, HIDDEN, HIDDEN]
        self.w = [tf.Variable(tf.random.normal([a, b]) * (2 / a) ** 0.5) for a, b in zip(sizes, sizes[1:])]
        self.head = tf.Variable(tf.random.normal([HIDDEN, 1]) * 0.05)
        self.bias = tf.Variable(0.0)

    def __call__(self, x, adj, owner):
        for w in self.w:
            x = tf.nn.relu(adj @ (x @ w))
        total = tf.math.unsorted_segment_mean(x @ self.head, owner, GRAPHS_A_BATCH + 1)
        return total[:GRAPHS_A_BATCH, 0] + self.bias


net = GCN()
opt = tf.keras.optimizers.Adam(2e-3)
opt.build(net.trainable_variables)


@tf.function
def train(x, adj, owner, target):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((net(x, adj, owner) - target) ** 2)
    opt.apply_gradients(zip(tape.gradient(loss, net.trainable_variables), net.trainable_variables))
    return loss


batches = [pack([random_molecule() for _ in range(GRAPHS_A_BATCH)]) for _ in range(BATCHES)]
if "retrace-shape" in REPAIR:
    biggest = max(len(b[0]) for b in batches)
    batches = [pad(b, biggest) for b in batches]
batches = [tuple(tf.constant(part) for part in b) for b in batches]

for epoch in range(PASSES):
    total = 0.0
    for batch in batches:
        total += train(*batch)  # stall: retrace-shape
    tf.print("pass", epoch, "mean squared error", total / BATCHES)
