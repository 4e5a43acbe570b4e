"""Models for the endpoint tests of KServe and MLServer: SavedModels that answer as the tests' own Python models do."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

Tensors = dict[str, Any]


def _input(kind: Any, shape: list[int | None] | None = None) -> Any:
    return tf.compat.v1.placeholder(kind, shape)


def _flat(tensor: Any) -> Any:
    return tf.reshape(tensor, [-1])


def repeat_input() -> tuple[Tensors, Tensors]:
    """KServe's DummyModel for REST."""
    given = _input(tf.int32)
    return {"input-0": given}, {"output-0": tf.identity(given)}


def widen_halves() -> tuple[Tensors, Tensors]:
    """KServe's DummyFP16InputModel for REST."""
    numbers, texts = _input(tf.float16), _input(tf.string)
    outputs = {"str_output": _flat(texts), "fp32_output": _flat(tf.cast(numbers, tf.float32))}
    return {"fp16_input": numbers, "str_input": texts}, outputs


def give_halves() -> tuple[Tensors, Tensors]:
    """KServe's DummyFP16OutputModel."""
    numbers = _input(tf.float32)
    outputs = {"fp16_output": _flat(tf.cast(numbers, tf.float16)), "fp32_output": _flat(numbers)}
    return {"fp32_input": numbers}, outputs


def repeat_all_types() -> tuple[Tensors, Tensors]:
    """KServe's DummyModel for gRPC; one of its outputs is named as an input."""
    kinds = {"fp32": tf.float32, "int32": tf.int32, "string": tf.string, "uint8": tf.uint8, "bool": tf.bool}
    inputs = {f"{name}_input": _input(kind) for name, kind in kinds.items()}
    outputs = {
        f"{name}_output" if name != "bool" else "bool_input": inputs[f"{name}_input"] for name in kinds
    }
    return inputs, {name: _flat(tensor) for name, tensor in outputs.items()}


def count_beside_halves() -> tuple[Tensors, Tensors]:
    """KServe's DummyFP16InputModel for gRPC."""
    numbers = _input(tf.float16)
    counts = tf.range(1, tf.size(numbers, tf.int64) + 1, dtype=tf.int64)
    return {"fp16_input": numbers}, {"int32_output": counts, "fp16_output": _flat(numbers)}


def add_up() -> tuple[Tensors, Tensors]:
    """MLServer's SumModel."""
    numbers = _input(tf.int32, [None, 3])
    return {"input-0": numbers}, {"total": tf.reduce_sum(tf.cast(numbers, tf.int64), 1, keepdims=True)}


def repeat_text() -> tuple[Tensors, Tensors]:
    """MLServer's TextModel."""
    prompt = _input(tf.string, [None])
    return {"prompt": prompt}, {"output": tf.identity(prompt)}


MODELS: dict[str, Callable[[], tuple[Tensors, Tensors]]] = {
    "repeat": repeat_input, "widen": widen_halves, "halves": give_halves, "types": repeat_all_types,
    "counts": count_beside_halves, "sum": add_up, "text": repeat_text,
}  # fmt: skip


def save_models(place: Path) -> None:
    """Save each model as version 1 under its name."""
    for name, make in MODELS.items():
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            inputs, outputs = make()
            tf.compat.v1.saved_model.simple_save(session, str(place / name / "1"), inputs, outputs)


if __name__ == "__main__":
    save_models(Path(sys.argv[1]))
