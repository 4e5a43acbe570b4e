"""The cuDNN layers against cells written in plain TensorFlow: the largest differences, as JSON."""

from __future__ import annotations

import itertools
import json
from typing import Any

from stoker.doctor import software_gpu

software_gpu.enable(memory="1GiB")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

STEPS, BATCH, INPUTS, UNITS = 5, 3, 4, 2
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def cell(mode: str, x: Any, h: Any, c: Any, weights: list[Any]) -> tuple[Any, Any]:
    """One step: the new hidden state and, for LSTM, the new memory."""
    from_input = x @ tf.transpose(weights[0]) + weights[2]
    from_state = h @ tf.transpose(weights[1]) + weights[3]
    if mode == "lstm":
        i, f, n, o = tf.split(from_input + from_state, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(n)
        return tf.sigmoid(o) * tf.tanh(c), c
    if mode == "gru":
        r, z, n = tf.split(from_input, 3, axis=1)
        r2, z2, n2 = tf.split(from_state, 3, axis=1)
        update = tf.sigmoid(z + z2)
        return (1 - update) * tf.tanh(n + tf.sigmoid(r + r2) * n2) + update * h, c
    total = from_input + from_state
    return (tf.tanh(total) if mode == "rnn_tanh" else tf.nn.relu(total)), c


def one_pass(mode: str, x: Any, h: Any, c: Any, weights: list[Any], lengths: Any) -> tuple[Any, Any, Any]:
    outputs = []
    for t in range(STEPS):
        new_h, new_c = cell(mode, x[t], h, c, weights)
        alive = tf.reshape(t < lengths, [-1, 1])
        h, c = tf.where(alive, new_h, h), tf.where(alive, new_c, c)
        outputs.append(tf.where(alive, h, 0.0))
    return tf.stack(outputs), h, c


def reference(
    mode: str, layers: int, directions: int, x: Any, h: Any, c: Any, params: Any, lengths: Any
) -> Any:
    blocks = unpacked(mode, layers, directions, params)
    last_h, last_c = [], []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            p = layer * directions + direction
            source = tf.reverse_sequence(x, lengths, 0, 1) if direction else x
            y, new_h, new_c = one_pass(mode, source, h[p], c[p], blocks[p], lengths)
            outputs.append(tf.reverse_sequence(y, lengths, 0, 1) if direction else y)
            last_h.append(new_h)
            last_c.append(new_c)
        x = tf.concat(outputs, axis=2)
    return x, tf.stack(last_h), tf.stack(last_c)


def shapes(mode: str, layers: int, directions: int) -> list[list[int]]:
    rows = GATES[mode] * UNITS
    widths = [INPUTS if p < directions else UNITS * directions for p in range(layers * directions)]
    matrices = [shape for width in widths for shape in ([rows, width], [rows, UNITS])]
    return matrices + [[rows]] * (2 * len(widths))


def unpacked(mode: str, layers: int, directions: int, params: Any) -> list[list[Any]]:
    sizes = shapes(mode, layers, directions)
    parts = tf.split(params, [int(np.prod(s)) for s in sizes])
    parts = [tf.reshape(part, size) for part, size in zip(parts, sizes, strict=True)]
    passes = layers * directions
    biases = 2 * passes
    return [[*parts[2 * p : 2 * p + 2], *parts[biases + 2 * p : biases + 2 * p + 2]] for p in range(passes)]


def difference(mode: str, layers: int, directions: int, ragged: bool) -> float:
    random = np.random.RandomState(layers * 10 + directions)
    passes = layers * directions
    total = sum(int(np.prod(s)) for s in shapes(mode, layers, directions))
    lengths = tf.constant([5, 2, 4] if ragged else [STEPS] * BATCH)
    values = [
        tf.constant(random.uniform(-1, 1, shape).astype("float32"))
        for shape in ((STEPS, BATCH, INPUTS), (passes, BATCH, UNITS), (passes, BATCH, UNITS), (total,))
    ]
    results = []
    for ours in (True, False):
        with tf.GradientTape() as tape:
            tape.watch(values)
            x, h, c, params = values
            if ours:
                direction = "bidirectional" if directions == 2 else "unidirectional"
                call = tf.raw_ops.CudnnRNNV3
                y, new_h, new_c, *_ = call(
                    input=x, input_h=h, input_c=c, params=params, sequence_lengths=lengths,
                    rnn_mode=mode, direction=direction, time_major=True,
                )  # fmt: skip
            else:
                y, new_h, new_c = reference(mode, layers, directions, x, h, c, params, lengths)
            score = tf.reduce_sum(y * y) + tf.reduce_sum(new_h * 0.3)
            if mode == "lstm":
                score += tf.reduce_sum(new_c * 0.7)
        kept = values if mode == "lstm" else [x, h, params]
        outputs = [y, new_h, *([new_c] if mode == "lstm" else [])]
        results.append([t.numpy() for t in [*outputs, *tape.gradient(score, kept)]])
    return max(float(np.max(np.abs(a - b) / (1 + np.abs(b)))) for a, b in zip(*results, strict=True))


def refusals() -> list[str]:
    """What the op says to dropout and to a projection, which it does not compute."""
    x, state = tf.zeros([STEPS, BATCH, INPUTS]), tf.zeros([1, BATCH, UNITS])
    weights = tf.zeros([sum(int(np.prod(shape)) for shape in shapes("lstm", 1, 1))])
    said = []
    for options in ({"dropout": 0.5}, {"num_proj": 2}):
        try:
            tf.raw_ops.CudnnRNNV3(
                input=x, input_h=state, input_c=state, params=weights, sequence_lengths=[STEPS] * BATCH,
                rnn_mode="lstm", time_major=True, **options,
            )  # fmt: skip
        except tf.errors.UnimplementedError as error:
            said.append(error.message)
    return said


forms = itertools.product(GATES, (1, 2), (1, 2), (False, True))
apart = {
    f"{mode}-{layers}-{directions}-{'ragged' if ragged else 'full'}": difference(
        mode, layers, directions, ragged
    )
    for mode, layers, directions, ragged in forms
}
print(json.dumps({"apart": apart, "refused": refusals()}))
