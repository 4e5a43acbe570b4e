"""How often code runs: steps, epochs, previews, gates, helpers, callbacks."""

from __future__ import annotations

import textwrap

import pytest

from stoker.doctor.check.registry import check
from stoker.doctor.check.source.analysis import analyse
from stoker.doctor.check.source.module import parse
from stoker.doctor.check.source.project import Project

HEAD = """\
import time
import numpy as np
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
"""


def syncs(body: str) -> list[int]:
    """Lines of the body, from 1, on which a sync is reported."""
    text = HEAD + textwrap.dedent(body).lstrip("\n")
    problems = check(analyse(parse("loops.py", text), Project()))
    return [p.line - HEAD.count("\n") for p in problems if p.kind == "sync-in-loop"]


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("for x in ds:\n    y = model(x)\n    float(tf.reduce_sum(y))", [3]),
        ("for e in range(9):\n    for x in ds:\n        y = model(x)\n    float(tf.reduce_sum(y))", []),
        ("for e in range(9):\n    y = model(data)\n    float(tf.reduce_sum(y))", [3]),
        ("for x in ds.take(2):\n    print(model(x).numpy())", []),
        ("while True:\n    y = model(next(it))\n    if tf.reduce_sum(y) > 3:\n        break", [3]),
        ("def log(v):\n    print(v.numpy())\nfor x in ds:\n    log(model(x))", [2]),
        ("def log(v):\n    print(v.numpy())\nlog(model(data))", []),
        ("for w in model.weights:\n    print(w.numpy())", []),
        ("out = [model(x).numpy() for x in ds]", [1]),
        ("for i in range(3):\n    print(model(data).numpy())", []),
        ("last = 0\nfor x in ds:\n    y = model(x)\n    if time.time() - last > 9:\n        print(y.numpy())", []),
        ("n = 0\nfor x in ds:\n    y = model(x)\n    n += 1\n    if n > 9:\n        float(y[0])\n        n = 0", []),
        ("for i, x in enumerate(ds):\n    y = model(x)\n    if i % 9: continue\n    print(y.numpy())", []),
        ("for x in ds:\n    y = model(x)\n    break\nprint(y.numpy())", []),
        ("for x, t in ds:\n    y = model(x)\n    t.numpy()", []),
        ("@tf.function\ndef f(x):\n    y = model(x)\n    if tf.reduce_sum(y) > 0:\n        y = -y\n    return y\n"
         "for x in ds:\n    f(x)", []),
        ("for x in ds:\n    for i in range(4):\n        y = model(x)\n    print(y.numpy())", [4]),
        ("class A:\n    def run(self):\n        for x in self.ds:\n            self.log(model(x))\n"
         "    def log(self, v):\n        print(v.numpy())\nA().run()", [6]),
        ("y = tf.zeros(())\nfor x in ds:\n    y = y.numpy() if False else model(x)\n    x = np.mean(3)", [3]),
    ],
)  # fmt: skip
def test_syncs(body: str, lines: list[int]) -> None:
    assert syncs(body) == lines
