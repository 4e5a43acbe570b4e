"""Loss-scaling calls that Keras 3 removed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.edits import replace_node
from stoker.doctor.check.gradients import SCALED, UNSCALED, bound_name, scaling_pair
from stoker.doctor.check.rule import Edit, Fix, Problem, Rule, character
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.module import SourceModule
from stoker.doctor.check.source.values import Thing

_REMOVED = {
    SCALED: "`get_scaled_loss` was removed in Keras 3; it is `scale_loss` now",
    UNSCALED: "`get_unscaled_gradients` was removed in Keras 3; `apply` unscales the gradients",
}
_PLAIN = ", and {name} scales nothing: wrap it in keras.mixed_precision.LossScaleOptimizer"
_USED = (
    ". Something else uses these gradients before that: clip through the inner optimizer's `global_clipnorm`, "
    "or divide them by the optimizer's `dynamic_scale` where they are read"
)
_OLD_NAMES = (
    "keras.mixed_precision.experimental.",
    "tf.train.experimental.enable_mixed_precision_graph_rewrite",
    "tf1.train.experimental.enable_mixed_precision_graph_rewrite",
    "tf.train.experimental.MixedPrecisionLossScaleOptimizer",
    "tf.mixed_precision.experimental.",
    "tf.train.experimental.DynamicLossScale",
)


class LegacyLossScaling(Rule):
    """Calls of the removed loss-scaling interface."""

    slug = "legacy-loss-scaling"
    code = "STK401"
    account = "compute"
    title = "Loss-scaling calls that Keras 3 removed"
    remedy = "Use LossScaleOptimizer.scale_loss; apply() unscales the gradients."
    severity = "error"
    what = (
        "Reports `optimizer.get_scaled_loss`, `optimizer.get_unscaled_gradients` and the experimental "
        "mixed-precision modules."
    )
    why = (
        "Keras 3 has none of them: the program stops with an AttributeError at its first step. The optimizer "
        "unscales gradients by itself when it applies them."
    )
    fix_safety = (
        "Safe where the optimizer is seen to be a `LossScaleOptimizer` and the gradients of the scaled loss "
        "go into its `apply_gradients` and nowhere else: `get_scaled_loss(loss)` becomes `scale_loss(loss)`, "
        "and the call of `get_unscaled_gradients` goes away, since `apply_gradients` unscales. Unsafe where "
        "nothing shows what the optimizer is: a plain one scales nothing. Not offered where anything else "
        "uses the gradients (a clip, a norm, another optimizer, a caller): it would see them scaled."
    )
    known_problems = (
        "Programs that stay on Keras 2 through `tf_keras` still have these calls; files that import "
        "`tf_keras` are left alone."
    )

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report calls of removed optimizer methods and removed modules."""
        for fact in analysis.facts:
            if not isinstance(fact, Call) or fact.at.module.imports_any("tf_keras"):
                continue
            method = fact.name.removeprefix("optimizer.")
            if fact.name.startswith("optimizer.") and method in _REMOVED:
                yield self.problem(fact.at, *_judge(fact, method))
            elif fact.name.startswith(_OLD_NAMES):
                yield self.problem(fact.at, f"`{fact.name}` is gone: use keras.mixed_precision")


def _judge(fact: Call, method: str) -> tuple[str, Fix | None]:
    """Return the message about a removed method, and a fix if one leaves the training unchanged."""
    message = _REMOVED[method]
    maker = fact.receiver.name if isinstance(fact.receiver, Thing) else "?"
    scales = maker.endswith("LossScaleOptimizer")
    if not scales and maker not in ("?", "keras.optimizers.Optimizer"):
        return message + _PLAIN.format(name=f"a plain `{maker.rsplit('.', 1)[-1]}`"), None
    pair = scaling_pair(fact.at.module, fact.call)
    if pair is None:
        return message + (_USED if method == UNSCALED else ""), None
    scaled, unscaled = pair
    safety = "safe" if scales else "unsafe"
    if method == SCALED:
        return message, Fix(safety, (_rename(fact.at.module, scaled),), "Rename to scale_loss")
    return message, Fix(safety, (_drop(fact.at.module, unscaled),), "Drop the call")


def _rename(module: SourceModule, call: ast.Call) -> Edit:
    line = int(call.func.end_lineno or call.func.lineno)
    end = character(module, line, int(call.func.end_col_offset or 0))
    return Edit(line, end - len(SCALED), line, end, "scale_loss")


def _drop(module: SourceModule, call: ast.Call) -> Edit:
    """Replace the call with its gradients, or remove the whole statement `g = optimizer.get_unscaled_gradients(g)`."""
    raw, statement = call.args[0], module.parents.get(call)
    alone = (
        isinstance(statement, ast.Assign)
        and isinstance(raw, ast.Name)
        and bound_name(module, call) == raw.id
        and module.lines[statement.lineno - 1][: statement.col_offset].strip() == ""
        and module.lines[(statement.end_lineno or statement.lineno) - 1][statement.end_col_offset :].strip()
        == ""
    )
    if alone and isinstance(statement, ast.Assign) and _has_siblings(module, statement):
        return Edit(statement.lineno, 0, int(statement.end_lineno or statement.lineno) + 1, 0, "")
    return replace_node(module, call, module.segment(raw))


def _has_siblings(module: SourceModule, statement: ast.stmt) -> bool:
    blocks = [getattr(module.parents[statement], name, []) for name in ("body", "orelse", "finalbody")]
    block: list[ast.stmt] = next((b for b in blocks if isinstance(b, list) and statement in b), [])
    return len(block) > 1 and block[-1] is not statement


STALL = LegacyLossScaling()
