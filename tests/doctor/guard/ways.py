"""Every way to get at a tensor's value, and what only looks like one. Shared by the CPU's and the device's test."""

from __future__ import annotations

import copy
import io
import pickle
import traceback
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import stoker


class Things:
    """What the ways read: made anew for each, because a second read of the same tensor is free."""

    def __init__(self) -> None:
        self.vector = tf.constant([1.0, 2.0, 3.0])
        self.scalar = tf.constant(2.0)
        self.whole = tf.constant(1, tf.int64)
        self.flag = tf.constant(True)
        self.half = tf.cast(self.vector, tf.bfloat16)
        self.variable = tf.Variable([1.0, 2.0])
        self.number = tf.Variable(3.0)
        self.keras_variable = keras.Variable(1.0)
        self.metric = keras.metrics.Mean()
        self.metric.update_state(3.0)
        self.ragged = tf.RaggedTensor.from_row_lengths(tf.constant([1.0, 2.0, 3.0]), tf.constant([1, 2]))
        self.array = np.zeros(3)
        self.int32 = tf.constant([1, 2])
        self.text = tf.constant(["a", "b"])
        self.optimizer = keras.optimizers.SGD()
        self.optimizer.build([self.keras_variable])
        self.function = tf.function(lambda x: tf.reduce_sum(x * 2.0))
        self.function(self.vector)


def while_tensor(t: Things) -> None:
    count = t.whole
    while count < 2:
        count = count + 1


def set_item(t: Things) -> None:
    t.array[0] = t.scalar


def set_all(t: Things) -> None:
    t.array[:] = t.vector


def by_comparison(t: Things) -> str:
    return "big" if t.scalar > 1.0 else "small"


def assertion(t: Things) -> None:
    assert t.scalar > 0.0


def unpacking(t: Things) -> float:
    first, _, _ = t.vector
    return float(first)


def printing(t: Things) -> None:
    print(t.vector, file=io.StringIO())


READS: dict[str, Callable[[Things], Any]] = {
    ".numpy()": lambda t: t.vector.numpy(),
    "float": lambda t: float(t.scalar),
    "int": lambda t: int(t.scalar),
    "complex": lambda t: complex(t.scalar),
    "bool": lambda t: bool(t.flag),
    "if": lambda t: 1 if t.flag else 0,
    "comparison": by_comparison,
    "assert": assertion,
    "not": lambda t: not t.flag,
    "and": lambda t: t.flag and 1,
    "while": while_tensor,
    "min": lambda t: min(t.scalar, t.scalar),
    "sorted": lambda t: sorted([t.scalar, t.scalar + 1.0]),
    "any": lambda t: any([t.flag]),
    "f-string": lambda t: f"{t.scalar}",
    "f-string with format": lambda t: f"{t.scalar:.3f}",
    "format()": lambda t: format(t.scalar, ".2f"),
    "percent": lambda t: "%f" % t.scalar,  # noqa: UP031
    "str": lambda t: str(t.vector),
    "repr": lambda t: repr(t.vector),
    "print": printing,
    "unpacking and float": unpacking,
    "float of an element": lambda t: float(t.vector[0]),
    "list index": lambda t: [1, 2, 3][t.whole],
    "range": lambda t: range(t.whole),
    "pickle": lambda t: pickle.dumps(t.vector),
    "np.mean": lambda t: np.mean(t.vector),
    "np.asarray": lambda t: np.asarray(t.vector),
    "np.array": lambda t: np.array(t.vector),
    "np.stack": lambda t: np.stack([t.vector, t.vector]),
    "np.asarray of bfloat16": lambda t: np.asarray(t.half),
    "np.float32()": lambda t: np.float32(t.scalar),
    "np.testing": lambda t: np.testing.assert_allclose(t.vector, t.vector),
    "array[i] = t": set_item,
    "array[:] = t": set_all,
    "memoryview": lambda t: memoryview(t.vector),
    "bytes": lambda t: bytes(memoryview(t.vector)),
    "np.frombuffer": lambda t: np.frombuffer(t.vector, np.float32),
    "dlpack": lambda t: tf.experimental.dlpack.to_dlpack(t.vector),
    "ragged.numpy()": lambda t: t.ragged.values.numpy(),
    "variable.numpy()": lambda t: t.variable.numpy(),
    "float(variable)": lambda t: float(t.number),
    "str(variable)": lambda t: str(t.variable),
    "np.asarray(variable)": lambda t: np.asarray(t.variable),
    "metric.result()": lambda t: float(t.metric.result()),
    "keras convert_to_numpy": lambda t: keras.ops.convert_to_numpy(t.vector),
    "keras variable": lambda t: t.keras_variable.numpy(),
    "result of a function": lambda t: float(t.function(t.vector)),
}


# TensorFlow swallows every error here: the guard can only raise when it ends. It still names the line.
LATE = {"str(variable)"}


def pinned_to_the_host() -> Any:
    with tf.device("/CPU:0"):
        return tf.constant([1.0, 2.0]) * 2.0


def from_a_pipeline() -> list[Any]:
    return [x.numpy() for x in tf.data.Dataset.from_tensor_slices([1.0, 2.0])]


def gradient(t: Things) -> Any:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(t.variable * 2.0)
    return tape.gradient(loss, t.variable)


NO_READS: dict[str, Callable[[Things], Any]] = {
    "len": lambda t: len(t.vector),
    "shape": lambda t: t.vector.shape,
    "slice": lambda t: t.vector[1:],
    "slice by a number": lambda t: t.vector[0],
    "slice by a tensor": lambda t: t.vector[: tf.constant(2)],
    "iteration": lambda t: [x * 2.0 for x in t.vector],
    "arithmetic": lambda t: t.vector * 2.0,
    "ndarray + tensor": lambda t: np.ones(3, np.float32) + t.vector,
    "compare": lambda t: t.vector == t.vector,
    "constant": lambda t: tf.constant([1.0, 2.0]),
    "gradient": gradient,
    "copy": lambda t: copy.deepcopy(t.vector),
    "assign": lambda t: t.variable.assign([2.0, 3.0]),
    "call of a function": lambda t: t.function(t.vector),
    "step % 100 on the device": lambda t: t.optimizer.iterations % 100 == 0,
    "int32, in host memory": lambda t: t.int32.numpy(),
    "shape as a tensor": lambda t: int(tf.shape(t.vector)[0]),
    "text": lambda t: t.text.numpy(),
    "pinned to the host": lambda t: pinned_to_the_host().numpy(),
    "out of an input pipeline": lambda t: from_a_pipeline(),
}


def outcome(act: Callable[[Things], Any]) -> dict[str, Any]:
    """Do it under a guard: what was raised, at which line, and whether that is inside of `act`."""
    things = Things()
    code = act.__code__
    last = max(line for *_, line in code.co_lines() if line)
    try:
        with stoker.guard(retraces=None):
            act(things)
    except stoker.SyncError as error:
        assert error.line is not None
        innermost = traceback.extract_tb(error.__traceback__)[-1]
        inside = code.co_firstlineno <= error.line.line <= last and error.line.file == code.co_filename
        stops = innermost.filename == code.co_filename and innermost.lineno == error.line.line
        return {"caught": True, "inside": inside, "stops": stops, "message": str(error)}
    return {"caught": False}


def all_outcomes() -> dict[str, dict[str, Any]]:
    return {way: outcome(act) for way, act in {**READS, **NO_READS}.items()}
