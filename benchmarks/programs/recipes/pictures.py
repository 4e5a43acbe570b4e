"""The settings of images on a base, for both ways."""

from __future__ import annotations

from stoker.recipes.programs import image


def on_a_base(data: str, run: str) -> image.Settings:
    """MobileNetV2, its weights in the file beside the data."""
    return image.Settings(
        data=data,
        run=run,
        size=(64, 64),
        base="MobileNetV2",
        family="mobilenet_v2",
        weights=f"{data}.weights.h5",
    )
