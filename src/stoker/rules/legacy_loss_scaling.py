"""STK401: loss-scaling calls that Keras 3 removed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.check.edits import replace_node
from stoker.check.rule import Edit, Fix, Page, Problem, Rule, bad, character, good
from stoker.source.analysis import Analysis
from stoker.source.facts import Call

_REMOVED = {
    "get_scaled_loss": "`get_scaled_loss` was removed in Keras 3; it is `scale_loss` now",
    "get_unscaled_gradients": "`get_unscaled_gradients` was removed in Keras 3; `apply` unscales the gradients",
}
_OLD_NAMES = (
    "keras.mixed_precision.experimental.",
    "tf.train.experimental.enable_mixed_precision_graph_rewrite",
    "tf1.train.experimental.enable_mixed_precision_graph_rewrite",
    "tf.train.experimental.MixedPrecisionLossScaleOptimizer",
    "tf.mixed_precision.experimental.",
    "tf.train.experimental.DynamicLossScale",
)


class LegacyLossScaling(Rule):
    """Calls of the loss-scaling interface that is gone."""

    kind = "legacy-loss-scaling"
    severity = "error"
    page = Page(
        what="Reports `optimizer.get_scaled_loss`, `optimizer.get_unscaled_gradients` and the experimental "
        "mixed-precision modules.",
        why="Keras 3 has none of them: the program stops with an AttributeError at its first step. The optimizer "
        "unscales gradients by itself when it applies them.",
        fix_safety="Safe: `get_scaled_loss(loss)` becomes `scale_loss(loss)`, and `get_unscaled_gradients(grads)` "
        "becomes `grads`.",
        known_problems="Programs that stay on Keras 2 through `tf_keras` still have these calls; files that import "
        "`tf_keras` are left alone.",
    )
    bad = (
        bad(
            """
            import tensorflow as tf

            optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())

            @tf.function
            def step(x, y):
                with tf.GradientTape() as tape:
                    loss = loss_fn(y, model(x))
                    scaled = optimizer.get_scaled_loss(loss)  #!
                grads = tape.gradient(scaled, model.trainable_variables)
                grads = optimizer.get_unscaled_gradients(grads)  #!
                optimizer.apply_gradients(zip(grads, model.trainable_variables))
            """,
            fixed="""
            import tensorflow as tf

            optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())

            @tf.function
            def step(x, y):
                with tf.GradientTape() as tape:
                    loss = loss_fn(y, model(x))
                    scaled = optimizer.scale_loss(loss)
                grads = tape.gradient(scaled, model.trainable_variables)
                grads = grads
                optimizer.apply_gradients(zip(grads, model.trainable_variables))
            """,
        ),
        bad(
            """
            import tensorflow as tf

            policy = tf.keras.mixed_precision.experimental.Policy("mixed_float16")  #!
            tf.keras.mixed_precision.experimental.set_policy(policy)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            opt = tf.keras.optimizers.Adam()
            opt = tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)  #!
            """
        ),
        bad(
            """
            import tensorflow as tf

            class Trainer:
                def apply(self, tape, loss):
                    grads = tape.gradient(loss, self.model.trainable_variables)
                    return self.optimizer.get_unscaled_gradients(grads)  #!
            """,
            fixed="""
            import tensorflow as tf

            class Trainer:
                def apply(self, tape, loss):
                    grads = tape.gradient(loss, self.model.trainable_variables)
                    return grads
            """,
        ),
    )
    good = (
        good(
            """
            import tensorflow as tf

            optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())

            @tf.function
            def step(x, y):
                with tf.GradientTape() as tape:
                    loss = optimizer.scale_loss(loss_fn(y, model(x)))
                grads = tape.gradient(loss, model.trainable_variables)
                optimizer.apply(grads, model.trainable_variables)
            """
        ),
        good(
            """
            import tf_keras

            def scaled(optimizer, loss):
                return optimizer.get_scaled_loss(loss)
            """
        ),
        good(
            """
            from tensorflow import keras

            keras.mixed_precision.set_global_policy("mixed_float16")
            """
        ),
        good(
            """
            import tensorflow as tf

            class Scaler:
                def get_scaled_loss(self, loss):
                    return loss * 128.0

            scaler = Scaler()
            loss = scaler.get_scaled_loss(loss)
            """
        ),
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Removed methods of optimizers, and removed modules."""
        for fact in analysis.facts:
            if not isinstance(fact, Call) or fact.at.module.imports_any("tf_keras"):
                continue
            method = fact.name.removeprefix("optimizer.")
            if fact.name.startswith("optimizer.") and method in _REMOVED:
                yield self.problem(fact.at, _REMOVED[method], _fix(fact, method))
            elif fact.name.startswith(_OLD_NAMES):
                yield self.problem(fact.at, f"`{fact.name}` is gone: use keras.mixed_precision")


def _fix(fact: Call, method: str) -> Fix | None:
    module, call = fact.at.module, fact.call
    function = call.func
    if len(call.args) != 1 or call.keywords or not isinstance(function, ast.Attribute):
        return None
    if isinstance(call.args[0], ast.Starred):
        return None
    if method == "get_scaled_loss":
        line = int(function.end_lineno or function.lineno)
        end = character(module, line, int(function.end_col_offset or 0))
        edit = Edit(line, end - len(method), line, end, "scale_loss")
        return Fix("safe", (edit,), "Rename to scale_loss")
    return Fix("safe", (replace_node(module, call, module.segment(call.args[0])),), "Drop the call")


RULE = LegacyLossScaling()
