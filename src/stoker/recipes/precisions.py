"""The precision a network is trained in: half of it where the device gains, and only there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

# The first GPUs whose tensor cores multiply float16.
_TENSOR_CORES = (7, 0)


def fitting() -> str:
    """What fits the devices that are here."""
    gpus = tf.config.list_physical_devices("GPU")
    return fitting_for([tf.config.experimental.get_device_details(one) for one in gpus])


def fitting_for(gpus: list[Mapping[str, Any]]) -> str:
    """ "mixed_float16" if every GPU has tensor cores; "float32" otherwise, and where there is none.

    Args:
        gpus: what TensorFlow tells of each.
    """
    found = [one.get("compute_capability", (0, 0)) for one in gpus]
    return "mixed_float16" if found and min(found) >= _TENSOR_CORES else "float32"


@contextmanager
def precision(name: str) -> Iterator[None]:
    """Layers that are made in the block compute in this precision; their weights are float32."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
