"""Checks of model and data before the first step: each fault in one line, with its remedy.

    stoker.fit(model, x, y, validation_split=0.1, check=True)

Mistakes that are certain (labels that the loss cannot take) are errors; anything that may be intended is a warning.
Only the first eight batches of a dataset are checked, in a pass of their own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import keras
import numpy as np
import tensorflow as tf

from stoker import units
from stoker.errors import ArgumentError
from stoker.tf_internals.keras_layers import calls_of
from stoker.tf_internals.types import Array, Data, Dataset, Layer, Model
from stoker.train.execution.feeding import memory

_BATCHES = 8
_ROWS = 100_000
_FEW = 5
# Beyond these, a first layer sees numbers for which its initial weights were not made.
_FAR, _WIDE = 10.0, 20.0
_LEAK = 0.9999
_SCALING = (
    keras.layers.Normalization,
    keras.layers.Rescaling,
    keras.layers.BatchNormalization,
    keras.layers.LayerNormalization,
    keras.layers.Embedding,
    keras.layers.CategoryEncoding,
    keras.layers.Discretization,
)
# The operations of keras.ops and the layers with which a model handles missing values.
_FILLING = ("Isnan", "NanToNum", "Isfinite", "Masking")


class CheckWarning(UserWarning):
    """Something about the model or the data that may be intended, but more often is not."""


@dataclass(frozen=True)
class Fault:
    """A fault in one line; `certain` means that training cannot work."""

    line: str
    certain: bool = False


@dataclass(frozen=True)
class DataSample:
    """The first rows: arrays by name, labels, the rows of a batch, and whether these are all rows."""

    inputs: dict[str, Array]
    labels: Array | None
    batch: int
    all_rows: bool


def look(
    model: Model, x: Data, y: Data, batch_size: int | None, validated: bool, held_out: float = 0.0
) -> None:
    """Raise for faults that are certain, and warn of the others.

    Args:
        model: a compiled model.
        x: the inputs, or a dataset.
        y: the labels.
        batch_size: the rows of a step.
        validated: whether there is validation data.
        held_out: the share of the rows that `validation_split` takes from the end.

    Raises:
        ArgumentError: training cannot work; the line says why, and what to do.
    """
    rows = take_sample(x, y, batch_size)
    found = [*find_faults(model, rows, validated), *_check_order(model, rows, held_out)]
    certain = [one.line for one in found if one.certain]
    if certain:
        raise ArgumentError("; ".join(certain))
    for one in found:
        warnings.warn(one.line, CheckWarning, stacklevel=4)


def take_sample(x: Data, y: Data, batch_size: int | None) -> DataSample:
    """Return the rows to check: the first hundred thousand of arrays, the first batches of a dataset."""
    if isinstance(x, tf.data.Dataset):
        inputs, labels, batch = _draw_batches(x)
        return DataSample(_name_inputs(inputs), labels, batch, False)
    if not hasattr(x, "__len__") or hasattr(x, "__next__") or isinstance(x, keras.utils.PyDataset):
        return DataSample({}, None, batch_size or 32, False)
    inputs = {name: np.asarray(one[:_ROWS]) for name, one in _name_inputs(x).items()}
    labels = None if y is None or isinstance(y, list | dict) else np.asarray(y[:_ROWS])
    return DataSample(inputs, labels, batch_size or 32, labels is not None and len(labels) == len(y))


def _draw_batches(dataset: Dataset) -> tuple[dict[str, Array], Array | None, int]:
    batches = list(dataset.take(_BATCHES).as_numpy_iterator())
    if not batches:
        return {}, None, 0
    inputs = [one[0] if isinstance(one, tuple) else one for one in batches]
    joined = {name: _join([_name_inputs(one)[name] for one in inputs]) for name in _name_inputs(inputs[0])}
    labels = None
    if isinstance(batches[0], tuple) and isinstance(batches[0][1], np.ndarray):
        labels = _join([one[1] for one in batches])
    return joined, labels, len(next(iter(_name_inputs(inputs[0]).values()), ()))


def _join(parts: list[Array]) -> Array:
    """Join batches into one array; if they are padded to different lengths, take the first."""
    same = all(one.shape[1:] == parts[0].shape[1:] for one in parts)
    return np.concatenate(parts) if same else parts[0]


def _name_inputs(x: Data) -> dict[str, Array]:
    if isinstance(x, Mapping):
        return {str(name): one for name, one in x.items() if hasattr(one, "__len__")}
    if isinstance(x, tuple | list):
        return {f"input {number}": one for number, one in enumerate(x) if hasattr(one, "shape")}
    return {"x": x}


def find_faults(model: Model, rows: DataSample, validated: bool) -> Iterator[Fault]:
    """Find all faults, the most important first."""
    if rows.labels is not None:
        yield from _check_labels(model, rows.labels, rows.all_rows)
    for name, values in rows.inputs.items():
        yield from _check_input(model, name, values)
        yield from _check_columns(name, values, rows.labels)
    yield from _check_memory(model, rows.batch)
    if not validated:
        yield Fault(
            "there is no validation data, so nothing shows when the model begins to overfit: give "
            "validation_split=0.1 or validation_data (no-validation-data)"
        )


def find_wrong_labels(model: Model, y: Array) -> Iterator[Fault]:
    """Run the quick part of the checks of labels: faults that make training impossible."""
    if _is_text(y):
        yield Fault(
            f"labels are text, such as {_decode(y.reshape(-1)[0])!r}, and losses take numbers: turn them into "
            "indices with keras.layers.StringLookup or a reader of stoker.data (string-labels)",
            True,
        )
    elif _loss_name(model) == "sparse_categorical_crossentropy" and y.dtype.kind in "iu":
        width = _output_width(model)
        ignored = getattr(model.loss, "ignore_class", None)
        kept = y if ignored is None else y[y != ignored]
        if width and width > 1 and kept.size and (y.ndim == 1 or y.shape[-1] != width):
            yield from _check_range(kept, width)


def _is_text(y: Array) -> bool:
    return y.dtype.kind in "US" or (y.dtype.kind == "O" and isinstance(y.reshape(-1)[0], str | bytes))


def _output_width(model: Model) -> int | None:
    outputs = getattr(model, "output_shape", None)
    return outputs[-1] if isinstance(outputs, tuple) and outputs else None


def _check_labels(model: Model, y: Array, all_rows: bool) -> Iterator[Fault]:
    if not len(y):
        yield Fault("there are no rows to learn from", True)
        return
    if _is_text(y):
        yield from find_wrong_labels(model, y)
        return
    if y.dtype.kind == "O":
        yield Fault(
            "labels are Python objects: convert them to numbers, for example with y.astype('float32')", True
        )
        return
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        yield Fault("labels are missing or infinite: leave those rows out", True)
        return
    width = _output_width(model)
    yield from _check_loss(_loss_name(model), width, y, _find_last_activation(model))
    yield from _check_probabilities(model, width)
    if all_rows and y.dtype.kind in "iu" and _loss_name(model).startswith("sparse"):
        values, counts = np.unique(y, return_counts=True)
        few = [(int(v), int(n)) for v, n in zip(values, counts, strict=True) if n < _FEW]
        if few:
            more = f", and {len(few) - 1} more have few" if len(few) > 1 else ""
            yield Fault(
                f"class {few[0][0]} has {units.quantity(few[0][1], 'example')}{more}: collect more, merge it with "
                "another, or leave it out"
            )


def _check_order(model: Model, rows: DataSample, held_out: float) -> Iterator[Fault]:
    """Warn if all held-out rows have one class: the data is then sorted."""
    y = rows.labels
    classes = _loss_name(model).endswith("crossentropy")
    if y is None or not held_out or not rows.all_rows or y.ndim != 1 or not classes:
        return
    last = y[int(len(y) * (1 - held_out)) :]
    if len(last) >= _FEW and len(np.unique(last)) == 1 and len(np.unique(y)) > 1:
        yield Fault(
            f"the last {len(last)} rows, which validation_split holds out, are all of class {last[0]}: "
            "shuffle the rows first"
        )


def _decode(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _loss_name(model: Model) -> str:
    loss = getattr(model, "loss", "")
    name = loss if isinstance(loss, str) else getattr(loss, "name", getattr(loss, "__name__", ""))
    return {"mse": "mean_squared_error", "mae": "mean_absolute_error"}.get(str(name), str(name))


def _find_last_activation(model: Model) -> str:
    """Return the last activation: "softmax", "sigmoid", "linear", or "" if it cannot be seen."""
    layers = getattr(model, "layers", [])
    return getattr(getattr(layers[-1] if layers else None, "activation", None), "__name__", "")


def _check_loss(loss: str, width: int | None, y: Array, ending: str) -> Iterator[Fault]:
    flat = y.ndim == 1 or y.shape[-1] == 1
    whole = y.dtype.kind in "iub" or bool(np.all(y == np.round(y)))
    if loss == "sparse_categorical_crossentropy" and width:
        if not flat and y.shape[-1] == width:
            yield Fault("labels are one-hot: use categorical_crossentropy (wrong-crossentropy)", True)
        elif not whole:
            yield Fault(
                f"labels such as {y.reshape(-1)[0]} are not classes: use loss='mse' (wrong-crossentropy)",
                True,
            )
        else:
            yield from _check_range(y, width)
    elif loss == "categorical_crossentropy" and flat and width and width > 1:
        yield Fault(
            "labels are indices, not one-hot: use sparse_categorical_crossentropy (wrong-crossentropy)", True
        )
    elif loss == "categorical_crossentropy" and width and not flat and y.shape[-1] != width:
        yield Fault(f"labels are one-hot of {y.shape[-1]} classes, and the model has {width} outputs", True)
    elif loss == "binary_crossentropy" and (y.min() < 0 or y.max() > 1):
        signs = (y.min(), y.max()) == (-1, 1)
        advice = "add 1 and divide by 2" if signs else "use a loss for more classes, or for numbers"
        yield Fault(
            f"labels run from {y.min()} to {y.max()}, and binary_crossentropy takes 0 to 1: {advice}", True
        )
    elif loss.startswith("mean_") and ending == "softmax" and flat and width and width > 1:
        yield Fault(
            f"{loss} of {width} probabilities and one label: use sparse_categorical_crossentropy", True
        )


def _check_probabilities(model: Model, width: int | None) -> Iterator[Fault]:
    """Check that the model's output is what its cross-entropy takes."""
    loss, ending = _loss_name(model), _find_last_activation(model)
    if ending == "softmax" and width == 1:
        yield Fault("a softmax over one output is 1 whatever its input: use a sigmoid", True)
    if not loss.endswith("crossentropy"):
        return
    usual = "sigmoid" if loss.startswith("binary") else "softmax"
    from_logits = bool(getattr(model.loss, "from_logits", False))
    if ending == "linear" and not from_logits:
        yield Fault(
            f"{loss} takes probabilities, but the last layer's output can be any number: give it "
            f"activation={usual!r}, or the loss from_logits=True (wrong-crossentropy)"
        )
    elif ending in ("softmax", "sigmoid") and from_logits:
        yield Fault(
            f"{loss} with from_logits=True expects logits, but the last layer's {ending} already gives probabilities: "
            f"leave one of the two out (wrong-crossentropy)"
        )


def _check_range(y: Array, width: int) -> Iterator[Fault]:
    least, largest = int(y.min()), int(y.max())
    if width == 1:
        yield Fault(
            "one output cannot tell classes apart: use binary_crossentropy with a sigmoid (wrong-crossentropy)",
            True,
        )
    elif least >= 1 and largest == width:
        yield Fault(
            f"labels run from {least} to {largest}, the model's {width} classes from 0 to {width - 1}: subtract 1",
            True,
        )
    elif least < 0 or largest >= width:
        advice = "number the classes from 0"
        if least >= 0:
            advice = f"give the last layer {largest + 1} outputs, or {advice}"
        yield Fault(
            f"labels run from {least} to {largest}, and the model has {width} outputs, for 0 to {width - 1}: {advice}",
            True,
        )


def _check_input(model: Model, name: str, values: Array) -> Iterator[Fault]:
    if values.dtype == np.float64:
        yield Fault(
            f"{name} is float64 and is converted to float32 batch by batch: convert it once (float64-compute)"
        )
    if values.dtype.kind not in "fiu" or not values.size:
        return
    if is_missing_some(model, values):
        yield describe_missing(name)
        return
    with np.errstate(all="ignore"):
        mean, spread = float(np.nanmean(values, dtype=float)), float(np.nanstd(values, dtype=float))
    if (abs(mean) > _FAR or spread > _WIDE) and not _is_scaled(model):
        yield Fault(
            f"{name} has values around {mean:.3g} that spread by {spread:.3g}: put keras.layers.Normalization, or "
            "Rescaling(1 / 255) for images, first (unnormalized-input)"
        )


def is_missing_some(model: Model, values: Array) -> bool:
    """Return whether some values are NaN or infinite, and nothing in the model handles them."""
    if values.dtype.kind != "f" or not values.size:
        return False
    with np.errstate(all="ignore"):
        # The sum is quicker than a look at each value, and is finite only if all values are.
        suspicious = not np.isfinite(values.sum())
    return bool(suspicious) and not np.isfinite(values).all() and not _handles_missing(model)


def describe_missing(name: str) -> Fault:
    """Return the fault of an input with missing values."""
    return Fault(f"{name} has missing or infinite values, which make every weight NaN: fill them in", True)


def _is_scaled(model: Model) -> bool:
    return any(isinstance(layer, _SCALING) for layer in _layers(model))


def _handles_missing(model: Model) -> bool:
    """Return whether the model or one of the user's layers may handle missing values."""
    made = [*getattr(model, "operations", []), *_layers(model)]
    return any(
        type(one).__name__ in _FILLING or not type(one).__module__.startswith("keras.") for one in made
    )


def _layers(model: Model) -> Iterator[Layer]:
    for layer in getattr(model, "layers", []):
        yield layer
        yield from _layers(layer)


def _check_columns(name: str, values: Array, labels: Array | None) -> Iterator[Fault]:
    """Find table columns that carry no information, or give the label away."""
    if values.dtype.kind not in "fiu" or values.ndim > 2 or len(values) < 2:
        return
    table = values.reshape(len(values), -1).astype(float)
    constant = np.flatnonzero(np.all(table == table[0], axis=0))
    if len(constant):
        which = name if values.ndim == 1 else f"column {constant[0]} of {name}"
        more = f", and {len(constant) - 1} more" if len(constant) > 1 else ""
        yield Fault(f"{which} is {table[0, constant[0]]:g} in every row{more}: leave it out")
    if labels is None or labels.size != len(values) or labels.dtype.kind not in "fiu":
        return
    with np.errstate(all="ignore"):
        y = labels.reshape(-1).astype(float)
        alike = np.abs(np.corrcoef(table, y, rowvar=False)[-1, :-1]) if len(values) > 2 else np.zeros(1)
    leaking = np.flatnonzero(alike > _LEAK)
    if len(leaking):
        which = name if values.ndim == 1 else f"column {leaking[0]} of {name}"
        yield Fault(
            f"{which} gives the label away by itself: leave it out if it is not known when the model predicts"
        )


def _check_memory(model: Model, batch: int) -> Iterator[Fault]:
    """Estimate the memory of a step: the outputs of all layers, kept for the gradients, and four numbers per weight."""
    numbers = 0
    for layer in _layers(model):
        output = getattr(layer, "output", None) if calls_of(layer) else None
        for shape in [getattr(one, "shape", ()) for one in tf.nest.flatten(output)]:
            if all(size is not None for size in shape[1:]):
                numbers += int(np.prod(shape[1:]))
    weights = 16 * model.count_params() if model.built else 0
    free = memory.free()
    if not numbers or free is None or weights + 4 * numbers * batch <= free:
        return
    fits = max(0, (free - weights) // (4 * numbers))
    advice = f"use at most batch_size={2 ** int(np.log2(fits))}" if fits else "use a smaller model"
    needed = units.size(weights + 4 * numbers * batch)
    yield Fault(f"a step on {batch} rows needs about {needed}, and {units.size(free)} is free: {advice}")
