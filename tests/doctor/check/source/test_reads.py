"""Which expressions read a tensor at every step, and which do not."""

from __future__ import annotations

import textwrap

import pytest

from stoker.doctor.check.source.analysis import analyse
from stoker.doctor.check.source.facts import TensorRead
from stoker.doctor.check.source.module import parse
from stoker.doctor.check.source.project import Project

LOOP = """
import json, math
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tqdm import tqdm

optimizer = keras.optimizers.Adam()
metric = keras.metrics.Mean()
names = ["a", "b"]
array = np.zeros(100)
bar = tqdm(range(1000))

@tf.function
def step(x):
    return tf.reduce_sum(x), {{"loss": tf.reduce_mean(x)}}

for i in bar:
    loss, logs = step(tf.ones(3))
    {line}
"""


def reads(line: str) -> bool:
    text = LOOP.format(line=textwrap.indent(textwrap.dedent(line), "    ").strip())
    facts = analyse(parse("loop.py", text), Project()).facts
    return any(isinstance(f, TensorRead) and f.at.hot and not f.at.graph for f in facts)


@pytest.mark.parametrize(
    "line",
    [
        "loss.numpy()",
        "float(loss)",
        "int(optimizer.iterations)",
        "print(loss)",
        "print('loss', logs['loss'])",
        "print(f'{loss:.3f}')",
        "print('%f' % loss)",
        "print('%d %f' % (i, loss))",
        "print('{}'.format(loss))",
        "best = min(1e9, loss)",
        "worst = max(loss, 0.0)",
        "x = 1 if loss > 0 else 2",
        "assert loss > 0",
        "ok = not loss",
        "ok = loss > 0 and i > 3",
        "np.mean(loss)",
        "np.array([loss, loss])",
        "array[i % 100] = loss",
        "bar.set_postfix(loss=loss)",
        "bar.set_description(f'{loss}')",
        "metric.result().numpy()",
        "float(metric.result())",
        "math.isnan(loss)",
        "names[tf.argmax(loss)]",
        "keras.ops.convert_to_numpy(loss)",
        "keras.backend.get_value(optimizer.learning_rate)",
        "values = [float(v) for v in logs.values()]",
        "for _ in range(tf.cast(loss, tf.int32)): pass",
        "total = loss\nif total < 3:\n    total = 0",
        "round(loss, 2)",
        "str(loss)",
        "while loss > 0:\n    loss = loss - 1",
    ],
)
def test_reads(line: str) -> None:
    assert reads(line)


@pytest.mark.parametrize(
    "line",
    [
        "pass",
        "total = loss + 1",
        "history = []; history.append(loss)",
        "if loss is None: pass",
        "print(loss.shape, loss.dtype)",
        "tf.print(loss)",
        "tf.summary.scalar('loss', loss, step=i)",
        "isinstance(loss, tf.Tensor)",
        "len(logs)",
        "metric.update_state(loss)",
        "if i % 100 == 0: print(float(loss))",
        "if not i % 100: print(float(loss))",
        "if i == 0: print(float(loss))",
        "if i % 100 == 0 and i > 0: print(float(loss))",
        "if i < 3: print(float(loss))",
        "try:\n    pass\nexcept ValueError:\n    print(loss.numpy())",
        "print(i, names)",
        "array[i % 100] = i",
        "bar.set_postfix(step=i)",
        "log = i % 50 == 0\nif log: print(loss.numpy())",
    ],
)
def test_does_not_read(line: str) -> None:
    assert not reads(line)
