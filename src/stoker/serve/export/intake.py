"""What goes into a bundle: the model's own inputs, or raw rows with what makes them the model's inputs in front.

`features` is what a reader of `stoker.data` knows: the columns of a table (categories come as text), the words of a
text (texts come as text), the bytes of an image. It may be the reader's dataset or its `features`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from stoker.data.features import Feature, Features
from stoker.errors import ArgumentError
from stoker.serve.examples import as_bytes
from stoker.serve.export import names
from stoker.serve.signature import Field, arguments
from stoker.tf_internals.keras_layers import input_structure, maker_of
from stoker.train.execution.batch_function import flatten, rebuild

# Types that clients have no plain form for: taken as float32, and cast.
_ROUNDED = ("bfloat16", "float16")


@dataclass(frozen=True)
class Intake:
    """The inputs of a bundle.

    Attributes:
        fields: in order.
        encode: in a graph: what the model is called with, from a tensor for each field.
        encode_rows: the same with NumPy, for the answers the bundle is measured by.
        in_front: layers of `encode` that hold vocabularies.
        keras_model: the model that takes these inputs, for `model.keras`.
        labels: what the classes are called, if the features know.
    """

    fields: tuple[Field, ...]
    encode: Callable[[list[Any]], Any]
    encode_rows: Callable[[list[Any]], Any]
    in_front: list[Any]
    keras_model: Any
    labels: list[Any] | None = None


def intake_of(model: keras.Model, features: Any, examples: Any) -> Intake:
    """Find out what the bundle takes.

    Raises:
        ArgumentError: the model does not say, or the features are not its own.
    """
    labels = getattr(features, "labels", None)
    vectorization = getattr(features, "vectorization", None)
    table = features if isinstance(features, Features) else getattr(features, "features", None)
    if vectorization is not None:
        return _texts(model, vectorization, getattr(features, "max_length", None), labels)
    if isinstance(table, Features) and not _takes_text_alone(model, table):
        return _table(model, table)
    if features is not None and labels is None and not isinstance(features, tf.data.Dataset):
        raise ArgumentError(
            f"features={type(features).__name__}: give a dataset of stoker.data, or its `features`"
        )
    spec = features.element_spec if isinstance(features, tf.data.Dataset) else None
    return _own(model, spec, examples, labels)


def _takes_text_alone(model: keras.Model, table: Features) -> bool:
    """A reader of texts: one column, which the model takes as a plain tensor."""
    return len(table) == 1 and not isinstance(input_structure(model), Mapping)


def _own(model: keras.Model, spec: Any, examples: Any, labels: list[Any] | None) -> Intake:
    """The model's own inputs; of types the dataset has, where there is one."""
    structure = input_structure(model)
    if structure is None:
        structure = _like(examples if spec is None else spec[0] if isinstance(spec, tuple) else spec)
    leaves: list[Any] = []
    skeleton = flatten(structure, leaves)
    data = _flat(spec[0] if isinstance(spec, tuple) else spec) if spec is not None else []
    given = [leaf.dtype for leaf in data] if len(data) == len(leaves) else [leaf.dtype for leaf in leaves]
    fields = _fields(
        _input_names(structure, leaves),
        [_served_type(dtype) for dtype in given],
        [tuple(leaf.shape[1:]) for leaf in leaves],
    )
    wanted = [_type_name(leaf.dtype) for leaf in leaves]

    def encode(tensors: list[Any]) -> Any:
        ready = [
            one if one.dtype == dtype else tf.cast(one, dtype)
            for one, dtype in zip(tensors, wanted, strict=True)
        ]
        return rebuild(skeleton, iter(ready))

    return Intake(fields, encode, lambda arrays: rebuild(skeleton, map(as_tensor, arrays)), [], model, labels)


def _like(examples: Any) -> Any:
    """What a model that does not say was called with: what its examples are."""
    if examples is None:
        raise ArgumentError(
            "the model does not say what it takes, as a subclassed one: give examples= (arrays with a few rows)"
        )
    if hasattr(examples, "columns") and hasattr(examples, "to_numpy"):
        examples = examples.to_numpy()
    return tf.nest.map_structure(
        lambda one: (
            one if isinstance(one, tf.TensorSpec) else tf.TensorSpec.from_tensor(tf.convert_to_tensor(one))
        ),
        examples,
    )


def _flat(structure: Any) -> list[Any]:
    leaves: list[Any] = []
    flatten(structure, leaves)
    return leaves


def _input_names(structure: Any, leaves: list[Any]) -> list[str]:
    if isinstance(structure, Mapping) and len(structure) == len(leaves):
        return sorted(structure)
    if all(maker_of(leaf) is not None for leaf in leaves):
        return names.chosen(leaves, "input")
    return names.numbered(len(leaves), "input")


def _type_name(dtype: Any) -> str:
    return str(tf.as_dtype(dtype).name)


def _served_type(dtype: Any) -> str:
    return "float32" if _type_name(dtype) in _ROUNDED else _type_name(dtype)


def _fields(
    found: list[str],
    dtypes: list[str],
    shapes: list[tuple[int | None, ...]],
    kinds: list[tuple[str, str]] | None = None,
) -> tuple[Field, ...]:
    kinds = kinds or [("", "")] * len(found)
    return tuple(
        Field(name, dtype, shape, tensor, kind, unit)
        for name, dtype, shape, tensor, (kind, unit) in zip(
            found, dtypes, shapes, arguments(found), kinds, strict=True
        )
    )


def _table(model: keras.Model, table: Features) -> Intake:
    """A table's columns; categories as text."""
    taken = input_structure(model)
    if not isinstance(taken, Mapping):
        raise ArgumentError(
            "the model takes no columns by name, so these features are not the ones it was made with"
        )
    lost = [name for name in taken if name not in table]
    if lost:
        raise ArgumentError(f"the model takes {lost[0]!r}, which these features do not have")
    columns = [feature for name, feature in table.items() if name in taken]
    fields = _fields(
        [one.name for one in columns],
        ["string" if one.kind == "category" else one.dtype for one in columns],
        [()] * len(columns),
        [(one.kind, one.unit) for one in columns],
    )
    fields = tuple(map(_with_missing, fields, columns))
    lookups = {
        one.name: table.lookup(one.name)
        for one in columns
        if one.kind == "category" and one.dtype != "string"
    }
    order = [one.name for one in columns]

    def encode(tensors: list[Any]) -> Any:
        return {
            name: tf.cast(lookups[name](one), table[name].dtype) if name in lookups else one
            for name, one in zip(order, tensors, strict=True)
        }

    def encode_rows(arrays: list[Any]) -> Any:
        return {
            name: _ids(table[name].vocabulary or (), one) if name in lookups else one
            for name, one in zip(order, arrays, strict=True)
        }

    whole = table.serving_model(model)
    return Intake(fields, encode, encode_rows, list(lookups.values()), whole, table.labels)


def _with_missing(field: Field, column: Feature) -> Field:
    """A CSV file has no null: what is missing there is a category of its own, the empty text, and null must mean it."""
    return replace(field, missing="") if "" in (column.vocabulary or ()) and not column.missing else field


def _ids(vocabulary: tuple[str, ...], texts: Any) -> Any:
    """As the reader numbers categories, without TensorFlow."""
    known = {word.encode("utf-8"): number for number, word in enumerate(vocabulary) if number}
    return np.array([known.get(as_bytes(one), 0) for one in texts], np.int32)


def as_tensor(array: Any) -> Any:
    """An array as a tensor; strings may be text or bytes."""
    if array.dtype != object:
        return tf.constant(array)
    return tf.constant([as_bytes(one) for one in array.ravel()], tf.string, array.shape)


def _texts(model: keras.Model, layer: Any, most: int | None, labels: list[Any] | None) -> Intake:
    """A text as text; its words become ids as in training."""
    (field,) = _fields(["text"], ["string"], [()])

    def ids(text: Any) -> Any:
        return layer(text) if most is None else layer(text)[:, :most]

    entry = keras.Input((), dtype="string", name="text")
    return Intake(
        (field,),
        lambda tensors: ids(tensors[0]),
        lambda arrays: ids(as_tensor(arrays[0])).numpy(),
        [layer],
        keras.Model(entry, model(ids(entry))),
        labels,
    )
