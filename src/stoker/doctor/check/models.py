"""Facts about a model for the rules on training practice: last layer, activation, scaling of the input."""

from __future__ import annotations

from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.values import Api, Py, Seq, Symbolic, Thing, Value


def last_layer(model: Value) -> Thing | None:
    """Return the layer that a model's output comes from, or None if the code does not show it."""
    if not isinstance(model, Thing) or model.type != "model":
        return None
    layers = model.about.get("layer_list")
    if isinstance(layers, list) and layers:
        return layers[-1] if isinstance(layers[-1], Thing) and layers[-1].type == "layer" else None
    result = model.about.get("result")
    if isinstance(result, Symbolic) and isinstance(result.layer, Thing) and result.layer.type == "layer":
        return result.layer
    return None


def activation(layer: Thing) -> str | None:
    """Return a layer's activation (`softmax`, `sigmoid`, ...): empty if it has none, None if it is unknown."""
    arguments = layer.about.get("arguments")
    last = layer.name.rsplit(".", 1)[-1]
    if not isinstance(arguments, Arguments) or arguments.open:
        return None
    if last == "Softmax":
        return "softmax"
    if last not in ("Dense", "Activation"):
        return None
    given = arguments.get(1, "activation") if last == "Dense" else arguments.get(0, "activation")
    if given is None:
        return ""
    if isinstance(given, Py):
        return "" if given.type == "none" else (given.const if isinstance(given.const, str) else None)
    return given.name.rsplit(".", 1)[-1] if isinstance(given, Api) else None


def units(layer: Thing) -> int | None:
    """Return the number of outputs of a Dense layer, or None if it is unknown."""
    arguments = layer.about.get("arguments")
    if not isinstance(arguments, Arguments) or not layer.name.endswith(".Dense"):
        return None
    count = arguments.const(0, "units")
    return count if isinstance(count, int) else None


def scales_input(model: Value) -> bool:
    """Return whether the model normalises its own input. Unknown models get the benefit of the doubt."""
    if not isinstance(model, Thing) or model.type != "model":
        return True
    layers = model.about.get("layer_list")
    if isinstance(layers, list) and layers:
        return any(not isinstance(layer, Thing) or _scales(layer) for layer in layers[:4])
    result = model.about.get("result")
    if isinstance(result, Seq):
        return True
    return not isinstance(result, Symbolic) or result.scaled or not isinstance(result.layer, Thing)


def _scales(layer: Thing) -> bool:
    return bool(layer.about.get("scaling")) or layer.type == "model" or layer.name.endswith("Lambda")
