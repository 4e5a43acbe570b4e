"""Loss, last activation and labels do not match."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stoker.doctor.check.models import activation, last_layer, units
from stoker.doctor.check.rule import Problem, Rule
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import Analysis, Call
from stoker.doctor.check.source.values import Array, Py, Thing, Value

_NAMES = {
    "sparse_categorical_crossentropy": "sparse",
    "SparseCategoricalCrossentropy": "sparse",
    "categorical_crossentropy": "categorical",
    "CategoricalCrossentropy": "categorical",
    "binary_crossentropy": "binary",
    "BinaryCrossentropy": "binary",
}


class WrongCrossentropy(Rule):
    """Cross-entropy losses that contradict the model's last layer or the labels."""

    slug = "wrong-crossentropy"
    code = "STK504"
    account = "compute"
    title = "Loss, last activation and labels do not match"
    remedy = "Use from_logits=True without a softmax, and the sparse loss for integer labels."
    severity = "error"
    what = (
        "Reports `from_logits=True` after a softmax or sigmoid, a cross-entropy of probabilities after a layer "
        "without activation, a softmax over one output, a binary cross-entropy over a softmax, integer labels with the "
        "categorical loss and one-hot labels with the sparse one."
    )
    why = (
        "Nothing fails: the model trains towards the wrong target, slowly or not at all, and every hour of it is "
        "lost."
    )
    known_problems = "Only models whose last layer can be seen in the code are judged."

    def check(self, analysis: Analysis) -> Iterator[Problem]:
        """Compare the losses of compiled models with their last layers and with the labels they are fitted to."""
        for fact in analysis.facts:
            if not isinstance(fact, Call):
                continue
            if fact.name == "model.compile":
                loss, message = fact.argument(1, "loss"), None
                layer = last_layer(fact.receiver)
                if layer is not None:
                    message = compare_with_layer(loss, layer)
                if message is not None:
                    yield self.problem(fact.at, message, node=_loss_node(fact))
            elif fact.name == "model.fit":
                yield from self._compare_with_labels(fact)

    def _compare_with_labels(self, fact: Call) -> Iterator[Problem]:
        labels, model = fact.argument(1, "y"), fact.receiver
        compiled = model.about.get("compiled_by") if isinstance(model, Thing) else None
        if (
            not isinstance(labels, Array)
            or not isinstance(compiled, Arguments)
            or not isinstance(model, Thing)
        ):
            return
        kind, node = family(compiled.get(1, "loss")), compiled.expression(1, "loss")
        wrong = (kind == "categorical" and labels.labels == "integer") or (
            kind == "sparse" and labels.labels == "one-hot"
        )
        if wrong and node is not None and _single_output(model):
            other = "sparse" if kind == "categorical" else "categorical"
            message = f"the labels are {labels.labels}: use the {other} cross-entropy"
            yield self.problem(fact.at, message, node=node)


def _single_output(model: Thing) -> bool:
    layer = last_layer(model)
    return layer is not None or "layer_list" in model.about


def _loss_node(fact: Call) -> ast.expr:
    for keyword in fact.call.keywords:
        if keyword.arg == "loss":
            return keyword.value
    return fact.call.args[1] if len(fact.call.args) > 1 else fact.call


def family(loss: Value | None) -> str:
    """Return `sparse`, `categorical` or `binary`, or an empty string for another loss."""
    if isinstance(loss, Py) and isinstance(loss.const, str):
        return _NAMES.get(loss.const, "")
    if isinstance(loss, Thing) and loss.type == "loss":
        return _NAMES.get(loss.name.rsplit(".", 1)[-1], "")
    return ""


def takes_logits(loss: Value | None) -> bool | None:
    """Return whether the loss takes logits; None if unknown."""
    if isinstance(loss, Py):
        return False
    given = loss.about.get("from_logits") if isinstance(loss, Thing) else None
    if given is None:
        arguments = loss.about.get("arguments") if isinstance(loss, Thing) else None
        given = arguments.get(0, "from_logits") if isinstance(arguments, Arguments) else None
    if given is None:
        return False
    return given.const if isinstance(given, Py) and isinstance(given.const, bool) else None


def compare_with_layer(loss: Value | None, layer: Thing) -> str | None:
    """Return how a loss contradicts a model's last layer, or None if it does not."""
    kind, last, logits = family(loss), activation(layer), takes_logits(loss)
    if not kind or last is None or logits is None:
        return None
    size = units(layer)
    if last == "softmax" and size == 1:
        return "a softmax over one output is always 1: use a sigmoid"
    if logits and last in ("softmax", "sigmoid"):
        return f"from_logits=True, but the model ends in a {last}"
    if not logits and last == "" and layer.name.endswith(".Dense"):
        return "the loss expects probabilities, but the model ends without activation: pass from_logits=True"
    if kind == "binary" and last == "softmax" and size not in (None, 2):
        return "a binary cross-entropy over a softmax: use the categorical one"
    if kind in ("sparse", "categorical") and size == 1:
        return "a categorical cross-entropy over one output: use the binary one"
    return None


STALL = WrongCrossentropy()
