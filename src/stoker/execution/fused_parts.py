"""Parts of a Keras model's training step that TensorFlow has one kernel for, where Keras writes many ops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import tensorflow as tf

from stoker.execution import fused_adam, fused_means, fused_normalization

# Smaller variables are in the processor's caches, whichever way they are updated.
LARGE = 1 << 16


def on_processors() -> bool:
    """Whether there are only processors, where this has been measured: on a GPU, XLA fuses."""
    return all(device.device_type == "CPU" for device in tf.config.list_physical_devices())


def found_in(model: Any) -> list[str]:
    """What is worth fusing of its step: for the update of a small network alone, Keras' very bits are not given up."""
    normalization = fused_normalization.applies(model)
    large = any(size_of(variable) >= LARGE for variable in model.trainable_variables)
    update = fused_adam.applies(model.optimizer) and (normalization or large)
    means = update and fused_means.applies(model)
    return (
        ["batch normalisation"] * normalization + ["the mean of embeddings"] * means + ["the update"] * update
    )


def size_of(variable: Any) -> int:
    """How many weights it has."""
    return int(tf.TensorShape(variable.shape).num_elements() or 0)


@contextmanager
def fused(model: Any) -> Iterator[None]:
    """What is traced inside has these parts fused."""
    update = fused_adam.applies(model.optimizer)
    with (
        fused_normalization.fused(model),
        # Alone it would keep XLA out, which may gain more.
        fused_means.fused(model) if update else nullcontext(),
        fused_adam.fused(model.optimizer) if update else nullcontext(),
    ):
        yield
