"""STK402: the model computes in float64."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.edits import replace_node
from stoker.doctor.check.rule import Fix, Page, Problem, Rule, bad, good
from stoker.doctor.check.source.analysis import Analysis
from stoker.doctor.check.source.facts import Call
from stoker.doctor.check.source.tensors import dtype_name

_EVERYWHERE = ("keras.layers.", "keras.Input", "keras.Sequential")
_POLICIES = frozenset(
    {"keras.backend.set_floatx", "keras.mixed_precision.set_global_policy", "keras.config.set_dtype_policy"}
)
# In code that runs at each step or inside a graph, these make the computation double.
_IN_STEPS = (
    "tf.cast",
    "tf.constant",
    "tf.convert_to_tensor",
    "tf.zeros",
    "tf.ones",
    "tf.random.",
    "tf.linspace",
)


class Float64Compute(Rule):
    """float64 asked for by a model or in a step."""

    kind = "float64-compute"
    severity = "warning"
    page = Page(
        what="Reports `set_floatx('float64')`, layers, inputs and variables of dtype float64, and casts to float64 "
        "inside a step or a mapped function.",
        why="Accelerators are built for 32 bits and less: float64 runs at 1/2 to 1/64 of the speed, takes twice the "
        "memory, and training gains nothing from it.",
        fix_safety="Unsafe: results change in the last digits.",
        known_problems="Scientific code that needs double precision has to allow it.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            tf.keras.backend.set_floatx("float64")  #!
            model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
            """,
            fixed="""
            import tensorflow as tf

            tf.keras.backend.set_floatx("float32")
            model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
            """,
        ),
        bad(
            """
            from tensorflow import keras
            import tensorflow as tf

            inputs = keras.Input((32,), dtype=tf.float64)  #!
            outputs = keras.layers.Dense(1, dtype="float64")(inputs)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x, y):
                x = tf.cast(x, tf.float64)  #!
                return tf.reduce_mean(tf.square(x - y))
            """
        ),
        bad(
            """
            import numpy as np
            import tensorflow as tf

            weights = tf.Variable(np.random.randn(100, 10), dtype=tf.float64)  #!
            """
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            tf.keras.backend.set_floatx("float32")
            model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
            """
        ),
        good(
            """
            import tensorflow as tf

            @tf.function
            def train_step(x, y):
                x = tf.cast(x, tf.float32)
                return tf.reduce_mean(tf.square(x - y))
            """
        ),
        good(
            """
            import numpy as np
            import tensorflow as tf

            scores = np.zeros(100, dtype=np.float64)
            total = tf.cast(metric.result(), tf.float64)
            """
        ),
        good(
            """
            import tensorflow as tf

            weights = tf.Variable(tf.random.normal([100, 10]))
            layer = tf.keras.layers.Dense(10, dtype="float32")
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Calls that ask for float64 where the model computes."""
        for fact in analysis.facts:
            if not isinstance(fact, Call):
                continue
            if fact.name in _POLICIES:
                asked = dtype_name(fact.arguments[0] if fact.arguments else None)
            elif fact.name in ("tf.cast", "tf.constant", "tf.convert_to_tensor"):
                asked = dtype_name(fact.argument(1, "dtype"))
            else:
                asked = dtype_name(fact.keywords.get("dtype"))
            if asked == "float64" and _matters(fact):
                yield self.problem(
                    fact.at, "float64 is slow on accelerators and takes twice the memory", _fix(fact)
                )


def _matters(fact: Call) -> bool:
    if fact.name in _POLICIES or fact.name.startswith(_EVERYWHERE) or fact.name == "tf.Variable":
        return True
    return fact.name.startswith(_IN_STEPS) and (fact.at.graph or fact.at.hot)


def _fix(fact: Call) -> Fix | None:
    module = fact.at.module
    for node in (*fact.call.args, *(keyword.value for keyword in fact.call.keywords)):
        if isinstance(node, ast.Constant) and node.value == "float64":
            quote = module.segment(node)[:1]
            if quote in ("'", '"'):
                return Fix("unsafe", (replace_node(module, node, f"{quote}float32{quote}"),), "Use float32")
        if isinstance(node, ast.Attribute) and node.attr == "float64":
            text = module.segment(node).removesuffix("float64") + "float32"
            return Fix("unsafe", (replace_node(module, node, text),), "Use float32")
    return None


RULE = Float64Compute()
