"""The weights a recipe's run ended with."""

from __future__ import annotations

from pathlib import Path

import keras


def weights_in(run: Path) -> list[tuple[tuple[int, ...], bytes]]:
    """Shape and bytes of every weight of the bundle's model."""
    model = keras.models.load_model(run / "bundle" / "model.keras")
    return [(weight.shape, weight.tobytes()) for weight in model.get_weights()]
