"""Parts of a Keras model's training step that TensorFlow has one kernel for, where Keras writes many ops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import tensorflow as tf

from stoker.tf_internals.types import Model, Variable
from stoker.train.execution import fused_adam, fused_means, fused_normalization

# Smaller variables are in the processor's caches, whichever way they are updated.
LARGE = 1 << 16


def on_processors() -> bool:
    """Whether there are only processors, where this has been measured: on a GPU, XLA fuses."""
    return all(device.device_type == "CPU" for device in tf.config.list_physical_devices())


def found_in(model: Model) -> list[str]:
    """What is worth fusing of its step, as reasons for the plan."""
    normalization, update = fused_normalization.applies(model), _fuses_update(model)
    found = [
        "batch normalisation is fused" if normalization else None,
        "the mean of embeddings is fused" if update and fused_means.applies(model) else None,
        "the update is fused" if update else None,
    ]
    reasons = [reason for reason in found if reason is not None]
    if not normalization and fused_normalization.may_apply(model):
        reasons.append(
            "batch normalisation is fused if it turns out to be of images, when the model is built"
        )
    return reasons


def _fuses_update(model: Model) -> bool:
    """Whether the update is worth it: of a small network without such layers, Keras' very bits are not given up."""
    return fused_adam.applies(model.optimizer) and (fused_normalization.applies(model) or _has_large(model))


def _has_large(model: Model) -> bool:
    # Of float32, since the kernel updates no others.
    return any(size_of(one) >= LARGE for one in model.trainable_variables if one.dtype == "float32")


def size_of(variable: Variable) -> int:
    """How many weights it has."""
    return int(tf.TensorShape(variable.shape).num_elements() or 0)


@contextmanager
def fused(model: Model) -> Iterator[None]:
    """What is traced inside has these parts fused."""
    normalized = False

    def note() -> None:
        nonlocal normalized
        normalized = True

    def worth_it() -> bool:
        # Asked when the update is traced, and so when the model is built, whatever was known of it before.
        return normalized or _has_large(model)

    with (
        fused_normalization.fused(model, note),
        # Alone it would keep XLA out, which may gain more.
        fused_means.fused(model) if _fuses_update(model) else nullcontext(),
        fused_adam.fused(model.optimizer, worth_it) if fused_adam.applies(model.optimizer) else nullcontext(),
    ):
        yield
