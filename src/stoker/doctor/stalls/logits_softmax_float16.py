"""Softmax or loss is computed in float16."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.doctor.check.edits import add_argument
from stoker.doctor.check.models import activation, last_layer
from stoker.doctor.check.rule import Fix, Problem, Rule
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.values import Py, Thing

_POLICY_CALLS = ("keras.mixed_precision.", "keras.config.set_dtype_policy", "keras.DTypePolicy")


class LogitsSoftmaxFloat16(Rule):
    """Output activations left in half precision."""

    slug = "logits-softmax-float16"
    code = "STK404"
    account = "compute"
    title = "Softmax or loss is computed in float16"
    remedy = "Give the last layer dtype='float32'."
    severity = "warning"
    what = (
        "Reports a softmax, or a sigmoid at a model's end, without `dtype='float32'` in a program that sets the "
        "`mixed_float16` policy."
    )
    why = "In float16 exponentials overflow and small probabilities become zero; the loss is then infinite or flat."
    fix_safety = "Unsafe: the output's dtype and its last digits change, for the better."
    known_problems = "A policy that another file sets is not seen."

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Report softmax layers anywhere and sigmoid layers at a model's end, if the program sets the policy."""
        calls = [fact for fact in analysis.facts if isinstance(fact, Call)]
        if not any(_sets_half(fact) for fact in calls):
            return
        ends = {
            id(last.node)
            for last in map(_end_of, calls)
            if last is not None and activation(last) == "sigmoid"
        }
        for fact in calls:
            if not fact.name.startswith("keras.layers.") or "dtype" in fact.keywords:
                continue
            if _is_softmax(fact) or id(fact.call) in ends:
                edit = add_argument(fact.at.module, fact.call, 'dtype="float32"')
                fix = None if edit is None else Fix("unsafe", (edit,), "Compute the output in float32")
                yield self.problem(fact.at, "this output activation is computed in float16", fix)


def _sets_half(fact: Call) -> bool:
    given = fact.arguments[0] if fact.arguments else fact.keywords.get("policy")
    return fact.name.startswith(_POLICY_CALLS) and isinstance(given, Py) and given.const == "mixed_float16"


def _end_of(fact: Call) -> Thing | None:
    return last_layer(fact.receiver) if fact.name == "model.compile" else None


def _is_softmax(fact: Call) -> bool:
    last = fact.name.rsplit(".", 1)[-1]
    if last == "Softmax":
        return True
    if last not in ("Dense", "Activation"):
        return False
    given = fact.argument(1 if last == "Dense" else 0, "activation")
    named = getattr(given, "name", "") or (given.const if isinstance(given, Py) else "")
    return isinstance(named, str) and named.rsplit(".", 1)[-1] == "softmax"


STALL = LogitsSoftmaxFloat16()
