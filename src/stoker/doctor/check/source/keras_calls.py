"""Calls of Keras: models, layers, losses, metrics, optimizers, data sets."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from stoker.doctor.check.source import functions, pipelines
from stoker.doctor.check.source.arguments import Arguments
from stoker.doctor.check.source.facts import FunctionMade
from stoker.doctor.check.source.values import (
    UNKNOWN,
    Array,
    Compiled,
    Seq,
    Symbolic,
    Tensor,
    Thing,
    Value,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

# The type of the objects that a module's classes make.
_CLASSES = {
    "layers": "layer",
    "losses": "loss",
    "metrics": "metric",
    "optimizers": "optimizer",
    "callbacks": "callback",
    "applications": "model",
}
# Bytes of the training images and of the test images of well-known data sets, as loaded (uint8).
_IMAGES = {
    "mnist": (47_040_000, 7_840_000),
    "fashion_mnist": (47_040_000, 7_840_000),
    "cifar10": (153_600_000, 30_720_000),
    "cifar100": (153_600_000, 30_720_000),
}
_SCALING = frozenset({"Rescaling", "Normalization", "BatchNormalization", "LayerNormalization"})
_LOADERS = frozenset(
    {
        "keras.models.load_model",
        "keras.saving.load_model",
        "keras.models.model_from_json",
        "keras.models.clone_model",
    }
)


def call(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    """Call a function or class of Keras."""
    m.emit_call(name, node, arguments)
    parts = name.split(".")
    area, last = (parts[1] if len(parts) > 2 else ""), parts[-1]
    if name in ("keras.Sequential", "keras.Model") or name in _LOADERS:
        return _model(m, name, node, arguments)
    if name == "keras.Input":
        return Symbolic()
    if area == "datasets" and last == "load_data":
        return _load_data(parts[2])
    if pipelines.is_source(name):
        return pipelines.source(m, name, node, arguments)
    if last[:1].isupper():
        return _make(m, area, name, node, arguments)
    return _function(m, area, name, node, arguments)


def _model(m: Machine, name: str, node: ast.Call, arguments: Arguments) -> Value:
    m.builds(model=True)
    about: dict[str, Any] = {}
    given = arguments.get(0, "layers")
    if name == "keras.Sequential":
        layers = list(given.items or ()) if isinstance(given, Seq) else []
        about = {"layer_list": layers, "random": any(_read_about(layer, "random") for layer in layers)}
    elif name == "keras.Model":
        about = {"result": arguments.get(1, "outputs")}
    return Thing("model", name, node, m.frame.module, about)


def _read_about(value: Value, key: str) -> Any:
    return value.about.get(key) if isinstance(value, Thing) else None


def _make(m: Machine, area: str, name: str, node: ast.Call, arguments: Arguments) -> Value:
    last = name.rsplit(".", 1)[-1]
    about: dict[str, Any] = {**arguments.by_name, "arguments": arguments}
    if last == "LossScaleOptimizer" or (area == "optimizers" and "schedules" not in name):
        m.builds(model=False)
        return Thing("optimizer", name, node, m.frame.module, about)
    if "schedules" in name:
        return Thing("schedule", name, node, m.frame.module, about)
    if area in _CLASSES:
        about["random"] = last.startswith("Random") and area == "layers"
        about["scaling"] = last in _SCALING
        if area == "applications":
            m.builds(model=True)
        return Thing(_CLASSES[area], name, node, m.frame.module, about)
    if last == "Progbar":
        return Thing("progbar", name, node)
    if last == "ImageDataGenerator":
        return Thing("datagen", name, node, m.frame.module, about)
    return Thing("object", name, node, m.frame.module, about)


def _load_data(which: str) -> Value:
    sizes = _IMAGES.get(which, (0, 0))
    images = which in _IMAGES
    y = Array(
        "uint8" if images else "int64", labels="integer" if images or which in ("imdb", "reuters") else ""
    )
    halves = (Array("uint8", pixels=which if images else "", size=size) for size in sizes)
    return Seq("tuple", items=tuple(Seq("tuple", items=(x, y)) for x in halves))


def _function(m: Machine, area: str, name: str, node: ast.Call, arguments: Arguments) -> Value:
    last = name.rsplit(".", 1)[-1]
    if any(isinstance(value, Symbolic) for value in arguments.values):
        return Symbolic()
    if last == "to_categorical":
        return Array("float32", labels="one-hot")
    if last == "preprocess_input":
        first = arguments.get(0, "x") or UNKNOWN
        return Array() if isinstance(first, Array) else first
    if last in ("img_to_array", "pad_sequences"):
        return Array()
    if area == "backend" and last == "function":
        how = Compiled(node, m.frame.module)
        m.emit(FunctionMade(m.at(node), rebuilt=functions.is_rebuilt(m)))
        return Thing("compiled", name, node, m.frame.module, {"of": UNKNOWN, "compiled": how})
    if last.startswith(_PLAIN):
        return UNKNOWN
    if area in ("ops", "losses", "metrics", "activations", "random", "backend"):
        m.work(strong=False)
        return Tensor()
    return UNKNOWN


# Functions of the backend that are about names, shapes and sessions, not about values.
_PLAIN = (
    "is_",
    "get_",
    "set_",
    "int_shape",
    "image_data",
    "floatx",
    "epsilon",
    "ndim",
    "dtype",
    "clear_",
    "reset_",
    "learning_phase",
    "backend",
    "name_scope",
    "manual_",
    "placeholder",
    "symbolic",
    "standardize",
    "track",
    "eager",
    "unique",
)
