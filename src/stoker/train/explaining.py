"""Explains in one line why training went wrong: the fault in the data, instead of Keras' page of traceback.

A short look precedes every fit. The full check of `check=True` follows if the fit raises or the loss is NaN. Nothing
here changes a bit of the training: a dataset is read only after that has failed.
"""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from stoker.doctor.attach.sites import OWN_ROOT
from stoker.errors import ArgumentError, StokerError
from stoker.tf_internals.types import Array, Data, LogValue, Model
from stoker.train import first_look
from stoker.train.execution.own_methods import is_own
from stoker.train.first_look import CheckWarning, DataSample, Fault

# How much of an array to look at before every fit: a few milliseconds.
_BYTES = 32 * 1024 * 1024
_LIBRARIES = (OWN_ROOT, *(os.path.dirname(os.path.abspath(str(one.__file__))) for one in (keras, tf, np)))


@dataclass
class FitData:
    """The model and the data of one fit, to examine if the fit goes wrong."""

    model: Model
    x: Data
    y: Data
    batch_size: int | None
    # Whether the reason is already known.
    is_explained: bool = False

    def look_briefly(self) -> None:
        """Raise for labels that the loss cannot take; warn of missing values, which make every weight NaN.

        Raises:
            ArgumentError: Keras would raise as well, in the middle of the first step.
        """
        if any(isinstance(one, list) and one and isinstance(one[0], np.generic) for one in (self.x, self.y)):
            raise ArgumentError("; ".join(fault.line for fault in self._find_lists()))
        labels = _read_start(self.y)
        if labels is not None and _has_keras_loss(self.model):
            certain = [one.line for one in first_look.find_wrong_labels(self.model, labels)]
            if certain:
                raise ArgumentError("; ".join(certain))
        for name, one in _name_arrays(self.x).items():
            values = _read_start(one)
            if values is not None and first_look.is_missing_some(self.model, values):
                self.is_explained = True
                _warn(first_look.describe_missing(name).line)

    def explain_error(self, error: Exception) -> ArgumentError | None:
        """Return the error to raise in place of one from TensorFlow or Keras; None if the data does not explain it."""
        if isinstance(error, StokerError) or not _is_from_library(error):
            return None
        certain = [one.line for one in self._find_faults(with_dataset=True) if one.certain]
        return ArgumentError("; ".join(certain)) if certain else None

    def explain_nan(self, step: int, logs: Mapping[str, LogValue]) -> None:
        """After a call, warn once if the loss is NaN: name the fault in the data, or else the usual reason."""
        loss = logs.get("loss")
        if self.is_explained or not isinstance(loss, int | float) or not math.isnan(loss):
            return
        self.is_explained = True
        certain = [one.line for one in self._find_faults(with_dataset=False) if one.certain]
        reason = "; ".join(certain) or "lower the learning rate, or give the optimizer clipnorm=1.0"
        _warn(f"the loss is NaN at step {step:,}: {reason}")

    def _find_faults(self, *, with_dataset: bool) -> list[Fault]:
        if isinstance(self.x, tf.data.Dataset):
            # Reading a dataset may change the order of its next pass.
            sample = self._read_dataset() if with_dataset else None
        else:
            labels = self.y if _is_array(self.y) else None
            sample = first_look.take_sample(_name_arrays(self.x), labels, self.batch_size)
        found = [*self._find_lists()]
        if sample is None:
            return found
        if not _has_keras_loss(self.model):
            sample = replace(sample, labels=None)
        for name, values in sample.inputs.items():
            found += _find_misfits(self.model, name, values)
        return found + list(first_look.find_faults(self.model, sample, validated=True))

    def _read_dataset(self) -> DataSample | None:
        try:
            return first_look.take_sample(self.x, None, None)
        except tf.errors.OpError:
            # The pipeline itself fails, as it did in training.
            return None

    def _find_lists(self) -> Iterator[Fault]:
        for name, one in (("x", self.x), ("y", self.y)):
            if isinstance(one, list) and one and isinstance(one[0], list | int | float | str | np.generic):
                yield Fault(f"{name} is a list of values: give np.array({name})", True)


def _find_misfits(model: Model, name: str, values: Array) -> Iterator[Fault]:
    """Find data that the only input of a model cannot take: text, or other columns."""
    taken = getattr(model, "inputs", None)
    if not taken or len(taken) != 1:
        return
    shape = tuple(taken[0].shape)
    if values.dtype.kind in "OUS" and taken[0].dtype != "string":
        first = values.reshape(-1)[0]
        is_text = isinstance(first, str | bytes)
        yield Fault(
            f"{name} holds {'text' if is_text else values.dtype.name}, such as "
            f"{(str(first) if isinstance(first, str) else first)!r}, and the model takes "
            f"{taken[0].dtype}: convert it, for example with {name}.astype('float32')",
            True,
        )
    elif len(shape) == values.ndim and any(
        None is not want != have for want, have in zip(shape[1:], values.shape[1:], strict=True)
    ):
        yield Fault(
            f"a row of {name} has the shape {values.shape[1:]}, and the model takes {shape[1:]}", True
        )


def _warn(line: str) -> None:
    """Warn at the user's line that called `fit`."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_LIBRARIES):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(line, CheckWarning, stacklevel=depth)


def _is_array(one: Any) -> bool:
    """Return whether reading a value needs no copy from a device: true of NumPy arrays and pandas columns."""
    return isinstance(one, np.ndarray) or type(one).__module__.partition(".")[0] == "pandas"


def _name_arrays(x: Data) -> dict[str, Array]:
    if isinstance(x, Mapping):
        named = {str(name): one for name, one in x.items()}
    elif isinstance(x, tuple | list):
        named = {f"input {number}": one for number, one in enumerate(x)}
    else:
        named = {"x": x}
    return {name: np.asarray(one) for name, one in named.items() if _is_array(one)}


def _read_start(one: Data) -> Array | None:
    """Return the first rows of an array; None for anything else."""
    if not _is_array(one) or not len(one):
        return None
    row = max(1, np.asarray(one[:1]).nbytes)
    return np.asarray(one[: max(1, _BYTES // row)])


def _has_keras_loss(model: Model) -> bool:
    """Return whether Keras itself computes the loss, so that its requirements are known."""
    if any(is_own(model, name) for name in ("train_step", "compute_loss")):
        return False
    loss = model.loss
    return isinstance(loss, str) or type(loss).__module__.startswith("keras.")


def _is_from_library(error: Exception) -> bool:
    """Return whether TensorFlow, Keras, NumPy or the trainer raised an error, rather than a line of the user's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code.co_filename.startswith(_LIBRARIES)
