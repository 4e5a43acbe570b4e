"""STK203: a changing Python argument retraces the function."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.edits import replace_node, tensorflow_name
from stoker.doctor.check.rule import Fix, Page, Problem, Rule, bad, describe, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import CompiledCall
from stoker.doctor.check.source.module import Module
from stoker.doctor.check.source.values import Py, Seq, Value

_RETRACING = frozenset({"int", "float", "str"})


class RetracePythonArg(Rule):
    """Python numbers and strings that differ from call to call of a tf.function."""

    kind = "retrace-python-arg"
    severity = "error"
    page = Page(
        what="Reports calls of a tf.function, in a loop, with a Python number or string that changes from call to "
        "call: a loop counter, a decaying rate, `len(batch)`, `float(x)`. Constants, booleans, tensors and functions "
        "with an `input_signature` are fine.",
        why="A Python value is part of the graph's key. Each new value means a new trace, which costs far more than "
        "the step, and the graphs pile up in memory.",
        fix_safety="Wrapping the argument in `tf.constant` is unsafe: inside the function it becomes a tensor, which "
        "matters where Python code branches on it.",
        known_problems="A value that in fact takes only a few different values is reported as if it took many.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x, step):
                return tf.reduce_mean(x) * tf.cast(step, tf.float32)

            for step in range(1000):
                train_step(batch, step)  #!
            """,
            fixed="""
            import tensorflow as tf

            @tf.function
            def train_step(x, step):
                return tf.reduce_mean(x) * tf.cast(step, tf.float32)

            for step in range(1000):
                train_step(batch, tf.constant(step))
            """,
        ),
        bad(
            """
            import tensorflow as tf

            class Agent:
                def __init__(self):
                    self.epsilon = 1.0

                @tf.function
                def act(self, state, epsilon):
                    return tf.where(tf.random.uniform(()) < epsilon, 0, 1)

                def play(self, env):
                    while True:
                        action = self.act(env.state, self.epsilon)  #!
                        self.epsilon *= 0.995
            """,
            fixed="""
            import tensorflow as tf

            class Agent:
                def __init__(self):
                    self.epsilon = 1.0

                @tf.function
                def act(self, state, epsilon):
                    return tf.where(tf.random.uniform(()) < epsilon, 0, 1)

                def play(self, env):
                    while True:
                        action = self.act(env.state, tf.constant(self.epsilon))
                        self.epsilon *= 0.995
            """,
        ),
        bad(
            """
            import tensorflow as tf

            def loss_of(x, weight):
                return tf.reduce_sum(x) * weight

            loss_of = tf.function(loss_of)
            beta = 0.0
            for epoch in range(50):
                beta = min(1.0, beta + 0.02)
                for x in dataset:
                    loss_of(x, weight=beta)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            @tf.function
            def accumulate(total, i):
                return total + i

            i = 0
            while i < 10000:
                total = accumulate(total, i)  #!
                i += 1
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x, step):
                return tf.reduce_mean(x) * tf.cast(step, tf.float32)

            for step in range(1000):
                train_step(batch, tf.constant(step))
            """
        ),
        good(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x, training, rate):
                return model(x, training=training) * rate

            RATE = 0.5
            for x in dataset:
                train_step(x, True, RATE)
            """
        ),
        good(
            """
            import tensorflow as tf

            @tf.function(input_signature=[tf.TensorSpec([None]), tf.TensorSpec([], tf.int32)])
            def train_step(x, step):
                return tf.reduce_mean(x) + tf.cast(step, tf.float32)

            for step in range(1000):
                train_step(batch, step)
            """
        ),
        good(
            """
            import tensorflow as tf

            @tf.function
            def run(x, mode):
                return x if mode == "train" else -x

            for mode in ("train", "eval"):
                run(batch, mode)
            """
        ),
        good(
            """
            import tensorflow as tf

            def plain_step(x, step):
                return tf.reduce_mean(x) * step

            for step in range(1000):
                plain_step(batch, step)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Each call's first varying Python argument."""
        for fact in analysis.facts:
            if not isinstance(fact, CompiledCall) or not fact.at.repeated or fact.compiled.signature:
                continue
            for node, value in fact.arguments:
                if varies(value):
                    message = f"{describe(node)} is a Python value that changes: each new value traces the function again"
                    yield self.problem(fact.at, message, _wrapped(fact.at.module, node, value))
                    break


def varies(value: Value) -> bool:
    """Whether a value is part of the graph's key and differs from call to call."""
    if isinstance(value, Py):
        return value.varies and value.type in _RETRACING
    if isinstance(value, Seq) and value.items is not None:
        return any(varies(item) for item in value.items)
    return False


def _wrapped(module: Module, node: ast.expr, value: Value) -> Fix | None:
    alias = tensorflow_name(module, node)
    if alias is None or not isinstance(value, Py) or value.type == "str":
        return None
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return None
    edit = replace_node(module, node, f"{alias}.constant({module.segment(node)})")
    return Fix("unsafe", (edit,), "Pass it as a tensor")


RULE = RetracePythonArg()
