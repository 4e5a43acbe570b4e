"""STK205: Python side effects in a tf.function happen only while it is traced."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.edits import replace_node, tensorflow_name
from stoker.doctor.check.rule import Fix, Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import SideEffect


class SideEffectInTfFunction(Rule):
    """Python effects inside compiled functions and what they call."""

    kind = "side-effect-in-tf-function"
    severity = "error"
    page = Page(
        what="Reports `print`, appending to a list from outside, counters kept in attributes or globals, random numbers "
        "and clocks of Python or NumPy inside a tf.function, or in a function it calls.",
        why="The Python code of a tf.function runs only while it is traced. A print appears once, a list gets one "
        "symbolic tensor, a counter counts traces, and a random number is the same in every step.",
        fix_safety="`tf.print` for `print` is unsafe: it prints at every step, to the error stream, and formats "
        "differently.",
        known_problems="A `print` that says that it is tracing is taken to be meant so.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x):
                loss = tf.reduce_mean(model(x))
                print("loss", loss)  #!
                return loss
            """,
            fixed="""
            import tensorflow as tf

            @tf.function
            def train_step(x):
                loss = tf.reduce_mean(model(x))
                tf.print("loss", loss)
                return loss
            """,
        ),
        bad(
            """
            import tensorflow as tf

            losses = []

            @tf.function
            def train_step(x):
                loss = tf.reduce_mean(model(x))
                losses.append(loss)  #!
                return loss
            """
        ),
        bad(
            """
            import numpy as np
            import tensorflow as tf

            def add_noise(x):
                return x + np.random.normal(size=(32, 8))  #!

            @tf.function
            def train_step(x):
                return model(add_noise(x))
            """
        ),
        bad(
            """
            import tensorflow as tf

            class Trainer:
                def __init__(self):
                    self.steps = 0

                @tf.function
                def step(self, x):
                    self.steps += 1  #!
                    return tf.reduce_sum(x)
            """
        ),
        bad(
            """
            import random
            import tensorflow as tf

            @tf.function
            def augment(image):
                if random.random() < 0.5:  #!
                    image = tf.image.flip_left_right(image)
                return image
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x):
                loss = tf.reduce_mean(model(x))
                tf.print("loss", loss)
                return loss
            """
        ),
        good(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x):
                print("Tracing train_step with", x.shape)
                parts = []
                for layer in model.layers:
                    x = layer(x)
                    parts.append(x)
                return tf.concat(parts, axis=-1)
            """
        ),
        good(
            """
            import tensorflow as tf

            class Trainer:
                def __init__(self):
                    self.steps = tf.Variable(0)

                @tf.function
                def step(self, x):
                    self.steps.assign_add(1)
                    return tf.reduce_sum(x)
            """
        ),
        good(
            """
            import random
            import tensorflow as tf

            @tf.function
            def train_step(x):
                return tf.reduce_mean(model(x))

            for x in dataset:
                loss = train_step(x)
                history.append(loss)
                if random.random() < 0.01:
                    print("loss", loss)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Every effect that the analysis met in traced code."""
        for fact in analysis.facts:
            if isinstance(fact, SideEffect):
                name = getattr(fact.compiled, "name", "a lambda")
                message = f"{fact.how} only while `{name}` is traced, not at every call"
                yield self.problem(fact.at, message, _printed(fact))


def _printed(fact: SideEffect) -> Fix | None:
    module, node = fact.at.module, fact.at.node
    alias = tensorflow_name(module, node)
    if alias is None or not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    plain = node.func.id == "print" and all(keyword.arg == "sep" for keyword in node.keywords)
    if not plain or any(isinstance(part, ast.JoinedStr) for part in ast.walk(node)):
        return None
    return Fix("unsafe", (replace_node(module, node.func, f"{alias}.print"),), f"Use {alias}.print")


RULE = SideEffectInTfFunction()
