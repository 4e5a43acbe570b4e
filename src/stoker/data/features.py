"""The columns of a table, and how a model takes them in.

    train = stoker.data.csv("sales.csv", label="price")
    print(train.features)                              # every column: its kind, type, missing values
    inputs = train.features.inputs()                   # one keras.Input a column
    x = train.features.encode(inputs)                  # a tensor [batch, width]: normalised, encoded
    model = keras.Model(inputs, keras.layers.Dense(1)(x))

The layers hold statistics of the training rows only, and are saved with the model.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker.data.cells import CellReading
from stoker.data.layer_names import any_column_names, layer_names
from stoker.data.statistics import Moments
from stoker.errors import ArgumentError
from stoker.tf_internals.types import Dataset, Layer, Model, Tensor

if TYPE_CHECKING:
    # This imports pyarrow, which a model without a table does not need.
    from stoker.data.labels import ClassName

UNKNOWN = "[UNK]"
# Categories with at most this many values are one-hot encoded; larger ones get a learned embedding.
_MOST_ONE_HOT = 32
# A column whose mean is within this many standard deviations of zero loses less than 1e-4 of one as float32.
_NEAR_ZERO = 1000
_TEXT_TOKENS = 20_000
_TEXT_WIDTH = 64
# Keras' names for the operations of `encode` that take no name.
_ENCODE_OPS = frozenset(
    {"all", "cast", "concatenate", "equal", "full_like", "isnan", "stack", "subtract", "where"}
)


@dataclass(frozen=True)
class Feature:
    """One input column.

    Attributes:
        name: the name of the column.
        kind: "number", "whole", "truth", "category", "text" or "date".
        dtype: the dtype of its tensor in a batch.
        vocabulary: for a category: what its ids stand for. Id 0 is a missing value, or one that no training row has.
        missing: how many values are missing.
        unit: for a date: the unit in which it is counted from 1970.
        reading: how the cells are written, if not plainly.
    """

    name: str
    kind: str
    dtype: str
    vocabulary: tuple[str, ...] | None = None
    missing: int = 0
    unit: str = ""
    reading: CellReading | None = None


class Features(Mapping[str, Feature]):
    """The input columns by name, with the statistics that a model needs."""

    def __init__(
        self,
        features: list[Feature],
        labels: list[ClassName] | None,
        label: str | None,
        moments: Callable[[], dict[str, Moments]],
        texts: Callable[[str], Dataset],
        found: Mapping[str, Any] | None = None,
        label_reading: CellReading | None = None,
    ) -> None:
        self._features = {feature.name: feature for feature in features}
        self._moments, self._texts = moments, texts
        self.labels = labels
        self.label = label
        # The findings of reading a table leniently: see `LenientTable.found`.
        self.found = found or {}
        self.label_reading = label_reading
        self._layer_names = layer_names(list(self._features))

    def __getitem__(self, name: str) -> Feature:
        return self._features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._features)

    def __len__(self) -> int:
        return len(self._features)

    @functools.cached_property
    def moments(self) -> dict[str, Moments]:
        """The count, mean and variance of each column of numbers, over the training rows."""
        return {name: found for name, found in self._moments().items() if name in self._features}

    def mean(self, name: str) -> float:
        """Return the mean of a column of numbers, over the training rows."""
        found = self.moments[name]
        return found.base + found.mean

    def variance(self, name: str) -> float:
        """Return the variance of a column of numbers, over the training rows."""
        return self.moments[name].variance

    def inputs(self, *, avoid: Collection[str] = ()) -> dict[str, Tensor]:
        """Return a `keras.Input` for each column, as the dataset gives it.

        Args:
            avoid: names of other layers of the model, which Keras may number (`dense_1`). Names must be unique, so the
                input of a column with such a name gets another one.
        """
        return {
            name: self._input(name, feature.dtype, {*_ENCODE_OPS, *avoid})
            for name, feature in self._features.items()
        }

    def _input(self, column: str, dtype: str, avoid: Collection[str]) -> Tensor:
        import keras

        plain = self._layer_names[column]
        if re.sub(r"_\d+$", "", plain) in avoid or plain in avoid:
            plain = self._own_name(f"{plain}_input")
        return keras.Input((), name=plain, dtype=dtype)

    def encode(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Encode all columns as one tensor of shape [batch, width].

        Numbers are normalised (a missing one becomes the mean, and another column marks it). Categories are one-hot
        encoded, or get a learned vector if they have many values. Text becomes the mean of its words' learned vectors.

        Raises:
            ArgumentError: an input is missing.
        """
        import keras

        lost = [name for name in self._features if name not in inputs]
        if lost:
            raise ArgumentError(f"encode: there is no input {lost[0]!r}: pass what features.inputs() gives")
        together = self._group_number_columns()
        parts = [self._normalize(names, inputs) for names in together]
        grouped = {name for names in together for name in names}
        parts += [
            part
            for name, feature in self._features.items()
            if name not in grouped
            for part in self._encode_feature(feature, inputs[name])
        ]
        return (
            parts[0] if len(parts) == 1 else keras.layers.Concatenate(name=self._own_name("features"))(parts)
        )

    def _group_number_columns(self) -> list[list[str]]:
        """Group number columns of one type, so that each group is normalised as one array with a few operations.

        Columns with gaps are excluded, and those so far from zero that float32 would lose digits.
        """
        groups: dict[str, list[str]] = {}
        for name, feature in self._features.items():
            if feature.kind in ("text", "category") or feature.missing:
                continue
            if abs(self.mean(name)) <= _NEAR_ZERO * math.sqrt(self.variance(name)):
                groups.setdefault(feature.dtype, []).append(name)
        return [names for names in groups.values() if len(names) > 1]

    def _normalize(self, names: list[str], inputs: Mapping[str, Tensor]) -> Tensor:
        import keras
        from keras import ops

        columns = ops.cast(ops.stack([inputs[name] for name in names], axis=1), "float32")
        return keras.layers.Normalization(
            axis=-1,
            mean=[self.mean(name) for name in names],
            variance=[self.variance(name) for name in names],
            name=self._own_name(f"{self._features[names[0]].dtype}_columns"),
        )(columns)

    def _own_name(self, wanted: str) -> str:
        """Return a layer name that no column has."""
        while wanted in self._layer_names.values():
            wanted += "_"
        return wanted

    def _encode_feature(self, feature: Feature, value: Tensor) -> list[Tensor]:
        if feature.kind == "text":
            return [self._text(feature, value)]
        if feature.kind == "category":
            return [self._category(feature, value)]
        return self._number(feature, value)

    def _number(self, feature: Feature, value: Tensor) -> list[Tensor]:
        import keras
        from keras import ops

        found = self.moments[feature.name]
        name = self._layer_names[feature.name]
        column = keras.layers.Reshape((1,), name=self._own_name(f"{name}_column"))(value)
        absent = None
        if feature.missing and feature.dtype.startswith("float"):
            absent = ops.isnan(column)
            column = ops.where(absent, ops.full_like(column, found.base + found.mean), column)
        # Subtract the base first, in the column's own type: the rest is small enough for float32.
        if found.base:
            column = ops.subtract(column, ops.full_like(column, found.base))
        column = ops.cast(column, "float32")
        scale = keras.layers.Normalization(
            axis=None,
            mean=found.mean,
            variance=found.variance,
            name=self._own_name(f"{name}_normalized"),
        )
        parts = [scale(column)]
        return parts if absent is None else [*parts, ops.cast(absent, "float32")]

    def _category(self, feature: Feature, value: Tensor) -> Tensor:
        import keras

        name = self._layer_names[feature.name]
        size = len(feature.vocabulary or ())
        if feature.dtype == "string":
            value = self.lookup(feature.name)(value)
        if size <= _MOST_ONE_HOT:
            return keras.layers.CategoryEncoding(size, "one_hot", name=self._own_name(f"{name}_one_hot"))(
                value
            )
        width = min(64, math.ceil(1.6 * size**0.56))
        return keras.layers.Embedding(size, width, name=self._own_name(f"{name}_embedding"))(value)

    def _text(self, feature: Feature, value: Tensor) -> Tensor:
        import keras
        from keras import ops

        name = self._layer_names[feature.name]
        words = keras.layers.TextVectorization(max_tokens=_TEXT_TOKENS, name=self._own_name(f"{name}_words"))
        words.adapt(self._texts(feature.name))
        ids = words(value)
        # A text without words becomes one unknown word (id 1), because an empty set has no mean.
        nothing = ops.all(ops.equal(ids, 0), axis=1, keepdims=True)
        ids = ops.concatenate([ids, ops.cast(nothing, "int64")], axis=1)
        vectors = keras.layers.Embedding(
            words.vocabulary_size(), _TEXT_WIDTH, mask_zero=True, name=self._own_name(f"{name}_embedding")
        )(ids)
        return keras.layers.GlobalAveragePooling1D(name=self._own_name(f"{name}_mean"))(vectors)

    def lookup(self, name: str) -> Layer:
        """Return the layer that turns a category's texts into ids; 0 for a text that no training row has."""
        import keras

        words = list(self._features[name].vocabulary or ())[1:]
        plain = self._own_name(f"{self._layer_names[name]}_ids")
        return keras.layers.StringLookup(vocabulary=words, num_oov_indices=1, name=plain)

    def serving_model(self, model: Model) -> Model:
        """Return the model with the vocabularies in front, so that it takes categories as text.

        A category that no training row has gets id 0, like a missing one.
        """
        import keras

        inputs, ready = {}, {}
        for name, feature in self._features.items():
            text = feature.kind == "category"
            # The model becomes a layer of the new one.
            inputs[name] = self._input(name, "string" if text else feature.dtype, {model.name})
            ready[name] = inputs[name]
            if text and feature.dtype != "string":
                ready[name] = self.lookup(name)(inputs[name])
        with any_column_names():
            return keras.Model(inputs, model(ready))

    def __repr__(self) -> str:
        lines = [f"{'column':<24} {'kind':<9} {'tensor':<8} {'missing':>9}  values"]
        for feature in self._features.values():
            words = f"{len(feature.vocabulary) - 1} categories" if feature.vocabulary else ""
            words = words or (f"{feature.unit} since 1970" if feature.unit else "")
            lines.append(
                f"{feature.name:<24} {feature.kind:<9} {feature.dtype:<8} {feature.missing:>9,}  {words}".rstrip()
            )
        if self.label is not None:
            shown = f"{len(self.labels)} classes" if self.labels is not None else "number"
            lines.append(f"{self.label:<24} label: {shown}")
        return "\n".join(lines)
