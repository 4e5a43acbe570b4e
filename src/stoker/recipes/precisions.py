"""The precision of training: float16 if the device gains from it, float32 otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import keras
import tensorflow as tf

# The first GPUs whose tensor cores multiply float16.
_TENSOR_CORES = (7, 0)


def choose_precision() -> str:
    """Choose the precision for the devices of this machine."""
    gpus = tf.config.list_physical_devices("GPU")
    return precision_for([tf.config.experimental.get_device_details(one) for one in gpus])


def precision_for(gpus: list[Mapping[str, tuple[int, int]]]) -> str:
    """Return "mixed_float16" if every GPU has tensor cores, otherwise (or without a GPU) "float32".

    Args:
        gpus: TensorFlow's details about each GPU.
    """
    found = [one.get("compute_capability", (0, 0)) for one in gpus]
    return "mixed_float16" if found and min(found) >= _TENSOR_CORES else "float32"


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Make layers in the block compute in this precision, with weights in float32."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
