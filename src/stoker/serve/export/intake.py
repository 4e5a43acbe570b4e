"""The inputs of a bundle: the model's own, or raw rows with the layers in front that make them the model's inputs.

`features` is the dataset of a reader of `stoker.data`, or that dataset's `features`. It describes the columns of a
table (categories come as text), the words of a text (texts come as text) or the bytes of an image.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import keras
import numpy as np
import tensorflow as tf

from stoker.data.cells import CellReading
from stoker.data.features import Feature, Features
from stoker.errors import ArgumentError
from stoker.serve.examples import as_bytes
from stoker.serve.export import names
from stoker.serve.signature import UNITS, Array, Field, arguments
from stoker.tf_internals.keras_layers import input_structure, maker_of
from stoker.tf_internals.types import Layer, Model, Nest, Tensor
from stoker.train.execution.batch_function import flatten, rebuild

# Clients have no plain form for these types, so the bundle takes float32 and casts.
_ROUNDED = ("bfloat16", "float16")


@dataclass(frozen=True)
class Intake:
    """The inputs of a bundle.

    Attributes:
        fields: the inputs in order.
        encode: makes the model's argument from a tensor for each field, in a graph.
        encode_rows: does the same with NumPy, for the answers that the bundle has to reproduce.
        in_front: the layers of `encode` that hold vocabularies.
        keras_model: the model that takes these inputs, for `model.keras`.
        labels: the names of the classes, if the features know them.
    """

    fields: tuple[Field, ...]
    encode: Callable[[list[Tensor]], Nest]
    encode_rows: Callable[[list[Array]], Nest]
    in_front: list[Layer]
    keras_model: Model
    labels: Sequence[object] | None = None


def intake_of(model: keras.Model, features: object, examples: object) -> Intake:
    """Find out what the bundle takes as inputs.

    Raises:
        ArgumentError: the model does not say what it takes, or the features are not the model's own.
    """
    labels = getattr(features, "labels", None)
    vectorization = getattr(features, "vectorization", None)
    table = features if isinstance(features, Features) else getattr(features, "features", None)
    if vectorization is not None:
        return _take_texts(model, vectorization, getattr(features, "max_length", None), labels)
    if isinstance(table, Features) and not _takes_text_alone(model, table):
        return _take_table(model, table)
    if features is not None and labels is None and not isinstance(features, tf.data.Dataset):
        raise ArgumentError(
            f"features={type(features).__name__}: give a dataset of stoker.data, or its `features`"
        )
    spec = features.element_spec if isinstance(features, tf.data.Dataset) else None
    return _take_own_inputs(model, spec, examples, labels)


def _takes_text_alone(model: keras.Model, table: Features) -> bool:
    """Return whether `table` is a reader of texts: one column, which the model takes as a plain tensor."""
    return len(table) == 1 and not isinstance(input_structure(model), Mapping)


def _take_own_inputs(
    model: keras.Model, spec: Nest, examples: object, labels: Sequence[object] | None
) -> Intake:
    """Take the model's own inputs, with the types of the dataset if there is one."""
    structure = input_structure(model)
    if structure is None:
        structure = _specs_of(examples if spec is None else spec[0] if isinstance(spec, tuple) else spec)
    leaves: list[Tensor] = []
    skeleton = flatten(structure, leaves)
    data = names.leaves_of(spec[0] if isinstance(spec, tuple) else spec) if spec is not None else []
    given = [leaf.dtype for leaf in data] if len(data) == len(leaves) else [leaf.dtype for leaf in leaves]
    fields = _fields(
        _input_names(structure, leaves),
        [_served_type(dtype) for dtype in given],
        [tuple(leaf.shape[1:]) for leaf in leaves],
    )
    wanted = [_type_name(leaf.dtype) for leaf in leaves]

    def encode(tensors: list[Tensor]) -> Nest:
        ready = [
            one if one.dtype == dtype else tf.cast(one, dtype)
            for one, dtype in zip(tensors, wanted, strict=True)
        ]
        return rebuild(skeleton, iter(ready))

    return Intake(fields, encode, lambda arrays: rebuild(skeleton, map(as_tensor, arrays)), [], model, labels)


def _specs_of(examples: Nest) -> Nest:
    """Return the specs of examples, for a model that does not say what it takes."""
    if examples is None:
        raise ArgumentError(
            "the model does not say what it takes, as is usual for a subclassed one: give examples= "
            "(arrays with a few rows)"
        )
    if hasattr(examples, "columns") and hasattr(examples, "to_numpy"):
        examples = examples.to_numpy()
    return tf.nest.map_structure(
        lambda one: (
            one if isinstance(one, tf.TensorSpec) else tf.TensorSpec.from_tensor(tf.convert_to_tensor(one))
        ),
        examples,
    )


def _input_names(structure: Nest, leaves: list[Tensor]) -> list[str]:
    if isinstance(structure, Mapping) and len(structure) == len(leaves):
        return sorted(structure)
    if all(maker_of(leaf) is not None for leaf in leaves):
        return names.choose_names(leaves, "input")
    return names.number_names(len(leaves), "input")


def _type_name(dtype: object) -> str:
    return str(tf.as_dtype(dtype).name)


def _served_type(dtype: object) -> str:
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


def _take_table(model: keras.Model, table: Features) -> Intake:
    """Take the columns of a table, categories as text."""
    taken = input_structure(model)
    if not isinstance(taken, Mapping):
        raise ArgumentError(
            "the model takes no columns by name, so these features are not the ones it was made with"
        )
    lost = [name for name in taken if name not in table]
    if lost:
        raise ArgumentError(f"the model takes {lost[0]!r}, which these features do not have")
    columns = [feature for name, feature in table.items() if name in taken]
    fields = table_fields(table, columns)
    lookups = {
        one.name: table.lookup(one.name)
        for one in columns
        if one.kind == "category" and one.dtype != "string"
    }
    order = [one.name for one in columns]

    def encode(tensors: list[Tensor]) -> Nest:
        return {
            name: tf.cast(lookups[name](one), table[name].dtype) if name in lookups else one
            for name, one in zip(order, tensors, strict=True)
        }

    def encode_rows(arrays: list[Array]) -> Nest:
        return {
            name: _ids(table[name].vocabulary or (), one) if name in lookups else one
            for name, one in zip(order, arrays, strict=True)
        }

    whole = table.serving_model(model)
    return Intake(fields, encode, encode_rows, list(lookups.values()), whole, table.labels)


def table_fields(table: Features, columns: Sequence[Feature]) -> tuple[Field, ...]:
    """Return the fields that a bundle takes for these columns of a table."""
    fields = _fields(
        [one.name for one in columns],
        ["string" if one.kind == "category" else one.dtype for one in columns],
        [()] * len(columns),
        [(one.kind, one.unit) for one in columns],
    )
    return tuple(
        _with_reading(_with_missing(field, column), column, table)
        for field, column in zip(fields, columns, strict=True)
    )


def _with_missing(field: Field, column: Feature) -> Field:
    """Treat null as the empty text if training did: a CSV file has no null, and the empty text is a category."""
    return replace(field, missing="") if "" in (column.vocabulary or ()) and not column.missing else field


def _with_reading(field: Field, column: Feature, table: Features) -> Field:
    """Add how a row's cells are read. A missing number becomes the mean if training had none in this column."""
    reading = column.reading or CellReading(column.kind, unit=UNITS.get(column.unit, column.unit))
    if not column.missing and column.name in table.moments:
        reading = replace(reading, fill=table.mean(column.name))
    return replace(field, reading=reading)


def _ids(vocabulary: tuple[str, ...], texts: Array) -> Array:
    """Return the ids of categories as the reader numbers them, without TensorFlow."""
    known = {word.encode("utf-8"): number for number, word in enumerate(vocabulary) if number}
    return np.array([known.get(as_bytes(one), 0) for one in texts], np.int32)


def as_tensor(array: Array) -> Tensor:
    """Return an array as a tensor; strings may be text or bytes."""
    if array.dtype != object:
        return tf.constant(array)
    return tf.constant([as_bytes(one) for one in array.ravel()], tf.string, array.shape)


def _take_texts(
    model: keras.Model, layer: Layer, most: int | None, labels: Sequence[object] | None
) -> Intake:
    """Take texts, whose words become ids as in training."""
    (field,) = _fields(["text"], ["string"], [()])

    def ids(text: Tensor) -> Tensor:
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
