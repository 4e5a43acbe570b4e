"""Attributes of library names, of project files, of the program's objects and of library objects."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from stoker.doctor.check.source import classes, guesses, imports, options
from stoker.doctor.check.source.module import SourceModule
from stoker.doctor.check.source.names import find_canonical_name
from stoker.doctor.check.source.values import (
    UNKNOWN,
    Api,
    Array,
    Class,
    Dataset,
    File,
    Instance,
    Method,
    Py,
    Seq,
    Symbolic,
    Tensor,
    Thing,
    Value,
    element_of,
)

if TYPE_CHECKING:
    from stoker.doctor.check.source.machine import Machine

_CONSTANTS = frozenset({"math.pi", "math.e", "math.inf", "np.pi", "np.e", "np.inf"})


def attribute(m: Machine, owner: Value, node: ast.Attribute) -> Value:
    """Evaluate `owner.name`."""
    name = node.attr
    if isinstance(owner, Api):
        dotted = find_canonical_name(f"{owner.name}.{name}")
        return Py("float") if dotted in _CONSTANTS else Api(dotted)
    if isinstance(owner, File):
        found = imports.member(m, owner.module, name)
        if found is None:
            inner = m.project.find(owner.module, name, level=1)
            found = File(inner) if inner is not None else UNKNOWN
        return found
    if isinstance(owner, Instance):
        return classes.attribute(m, owner, name)
    if isinstance(owner, Class):
        return classes.member(owner.info, name) or UNKNOWN
    if isinstance(owner, Tensor):
        return _read_tensor_attribute(owner, name)
    if isinstance(owner, Array):
        return Array(owner.dtype) if name == "T" else Py("object")
    if isinstance(owner, Thing) and owner.type == "options":
        return options.attribute(owner, name)
    if isinstance(owner, Thing):
        guessed = guesses.attribute(m, node) if owner.type == "foreign" else UNKNOWN
        return thing_attribute(owner, name) if guessed is UNKNOWN else guessed
    if isinstance(owner, Dataset):
        return Method(owner, name)
    if owner is UNKNOWN:
        return guesses.attribute(m, node)
    return UNKNOWN


def _read_tensor_attribute(owner: Tensor, name: str) -> Value:
    if name == "shape":
        return Seq("tuple", element=Py("int"))
    if name in ("values", "value", "T"):
        return Tensor(host=owner.host)
    if name in ("dtype", "name", "device"):
        return Py("object")
    return Method(owner, name)


def thing_attribute(owner: Thing, name: str) -> Value:
    """Return an attribute of a library object."""
    held = owner.about.get(name)
    if owner.type == "optimizer" and name in ("iterations", "learning_rate", "lr"):
        # Keras puts a given number into a variable, but keeps a schedule as it is.
        return held if isinstance(held, Thing) else Tensor(variable=True)
    if isinstance(held, Value):
        return held
    if name in guesses.VARIABLES:
        return Seq("list", element=Tensor(variable=True))
    if owner.type == "strategy" and name == "num_replicas_in_sync":
        return Py("int", replicas=True)
    if owner.type == "model":
        return _read_model_attribute(owner, name)
    if owner.type == "progress" and name in ("n", "total"):
        return Py("int", varies=True)
    return Method(owner, name)


def _read_model_attribute(owner: Thing, name: str) -> Value:
    if name == "layers":
        return Seq("list", element=Thing("layer", "keras.layers.Layer"))
    if name == "optimizer":
        return Thing("optimizer", "keras.optimizers.Optimizer")
    if name == "metrics":
        return Seq("list", element=Thing("metric", "keras.metrics.Metric"))
    if name == "losses":
        return Seq("list", element=Tensor())
    if name in ("input", "output"):
        return Symbolic()
    if name in ("inputs", "outputs"):
        return Seq("list", element=Symbolic())
    if name in ("name", "built", "stop_training", "input_shape", "output_shape", "metrics_names"):
        return Py("object")
    return Method(owner, name)


def resolve_star_name(module: SourceModule, name: str) -> Value:
    """Return the value of a name that must come from a star import."""
    best = ""
    for prefix in module.star_imports:
        dotted = find_canonical_name(f"{prefix}.{name}")
        # Classes are in `keras.layers`, `keras.losses` and so on; functions are in `tf` and `keras.backend` themselves.
        if prefix in ("keras.layers", "keras.losses", "keras.metrics", "keras.optimizers", "keras.callbacks"):
            if name[:1].isupper():
                return Api(dotted)
        elif not best:
            best = dotted
    return Api(best) if best else UNKNOWN


def item_of(owner: Value) -> Value:
    """Evaluate `owner[index]` for an owner that is not a container, tensor or ndarray."""
    if isinstance(owner, Thing) and owner.type in ("iterator", "progress"):
        return element_of(owner)
    if isinstance(owner, Py):
        return Py(owner.type if owner.type == "str" else "object", varies=owner.varies)
    return UNKNOWN
