"""Parts of a Keras model's training step for which TensorFlow has one kernel where Keras uses many ops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from stoker.tf_internals.types import Model
from stoker.train.execution import fused_layers, fused_update


def find_parts(model: Model) -> list[str]:
    """Return the parts of the step that are worth fusing, as reasons for the plan."""
    normalization, update = fused_layers.normalizes_images(model), _fuses_update(model)
    found = [
        "batch normalisation runs in one kernel" if normalization else None,
        "the mean of embeddings runs in one kernel"
        if update and fused_layers.averages_embeddings(model)
        else None,
        "the update runs in one kernel" if update else None,
    ]
    reasons = [reason for reason in found if reason is not None]
    if not normalization and fused_layers.may_normalize_images(model):
        reasons.append(
            "batch normalisation runs in one kernel if it turns out to be of images, when the model is built"
        )
    return reasons


def _fuses_update(model: Model) -> bool:
    """Return whether to fuse the update. A small network without such layers keeps Keras' exact bits."""
    return fused_update.is_plain_adam(model.optimizer) and (
        fused_layers.normalizes_images(model) or _has_large(model)
    )


def _has_large(model: Model) -> bool:
    # Only float32, since the kernel updates no other type.
    return any(
        fused_update.size_of(one) >= fused_update.LARGE
        for one in model.trainable_variables
        if one.dtype == "float32"
    )


@contextmanager
def fuse_parts(model: Model) -> Iterator[None]:
    """Fuse these parts in traces within the block."""
    normalized = False

    def note() -> None:
        nonlocal normalized
        normalized = True

    def is_worth_it() -> bool:
        # Asked when the update is traced. By then the model is built, whatever was known about it before.
        return normalized or _has_large(model)

    with (
        fused_layers.fuse_normalization(model, note),
        # Only together with the update: alone, it would keep XLA out, which may gain more.
        fused_layers.fuse_means(model) if _fuses_update(model) else nullcontext(),
        fused_update.fuse_adam(model.optimizer, is_worth_it)
        if fused_update.is_plain_adam(model.optimizer)
        else nullcontext(),
    ):
        yield
