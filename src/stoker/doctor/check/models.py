"""What the training-practice rules ask of a model: its last layer, its activation, whether it scales its input."""

from __future__ import annotations

from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.values import Api, Py, Seq, Symbolic, Thing, Value


def last_layer(model: Value) -> Thing | None:
    """The layer a model's output comes from, where the code shows it."""
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
    """`softmax`, `sigmoid`, ...; empty for none, None where it cannot be known."""
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
    """How many outputs a Dense layer has."""
    arguments = layer.about.get("arguments")
    if not isinstance(arguments, Arguments) or not layer.name.endswith(".Dense"):
        return None
    count = arguments.const(0, "units")
    return count if isinstance(count, int) else None


def scales_input(model: Value) -> bool:
    """Whether the model is known to normalise its own input; unknown models get the benefit of the doubt."""
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
