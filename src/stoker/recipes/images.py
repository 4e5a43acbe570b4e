"""`stoker.recipes.image`: what the images are decides on the settings of the program that learns their classes."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from stoker.data import augmenting
from stoker.data.class_folders import class_files
from stoker.data.image_files import fault_of
from stoker.data.image_reader import check_size
from stoker.data.paths import IMAGES
from stoker.errors import ArgumentError
from stoker.recipes import durations
from stoker.recipes.arguments import check, path_of
from stoker.recipes.beginning import Place, begin
from stoker.recipes.counting import batch_size, check_classes, tell_of_odd_classes, uneven
from stoker.recipes.precisions import fitting
from stoker.recipes.programs.image import Settings, read

_FILTERS = (32, 64, 128, 256)
_LARGEST, _LARGEST_FOR_BASE, _LEAST_FOR_BASE = 96, 160, 96
# Images that are opened to see their size and colours.
_OPENED = 40


def image(
    data: str | os.PathLike[str],
    *,
    size: tuple[int, int] | None = None,
    base: str | None = None,
    weights: str | None = None,
    augment: Sequence[str] | None = None,
    epochs: int | None = None,
    time: str | float | None = None,
    seed: int = 0,
    runs: str = "runs",
    name: str | None = None,
    fresh: bool = False,
    eject: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any] | None:
    """Train, compare and export a network that tells the class of an image.

    Args:
        data: a folder with a folder for each class.
        size: height and width the images are brought to; what they have, or 96 pixels, by default.
        base: a model of `keras.applications` to begin from, such as "MobileNetV2": first a new head is trained on it,
            then its last layers, too. A small network from scratch by default.
        weights: a file with the weights of the base, if not those that Keras has or downloads.
        augment: changes to the training images, as `stoker.data.images` names them; by their colours by default.

    The other arguments, what is returned and what is raised are those of `table`.
    """
    path = path_of(data)
    check(epochs=epochs, seed=seed, runs=runs)
    check_size(size, "size")
    found = class_files(Path(path).expanduser(), IMAGES)
    seen, colours = _looked_at([file.path for file in found])
    classes = np.array([file.class_name for file in found])
    check_classes(f"the class in {path}", classes, None)
    tell_of_odd_classes(classes, None)
    color_mode = "rgb" if colours or base else "grayscale"
    if augment is None:
        augment = ("flip", "crop", "brightness") if colours else ()
    augmenting.check(augment, color_mode)
    settings = Settings(
        data=path,
        run="",
        size=_size(seen, base) if size is None else (size[0], size[1]),
        color_mode=color_mode,
        augment=tuple(augment),
        balanced=uneven(classes),
        precision=fitting(),
        batch_size=batch_size(len(found), 16 if len(found) < 1000 else 32),
        seed=seed,
        time_s=None if time is None else durations.seconds(time),
    )
    blocks = max(1, min(len(_FILTERS), int(np.log2(min(settings.size))) - 1))
    settings = replace(settings, filters=_FILTERS[:blocks])
    if base is not None:
        settings = _on(base, weights, settings)
    elif weights is not None:
        raise ArgumentError("--weights needs --base: say which model they belong to")
    if epochs is not None:
        settings = replace(settings, epochs=epochs)
    # Images that cannot be read are said before a run is made; what is read here is in the cache then.
    read(settings)
    place = Place(runs, name, fresh, eject, overwrite)
    files = [Path(file.path) for file in found] + ([] if weights is None else [Path(weights)])
    return begin("image", settings, place, files, [Path(path).name])


def _looked_at(found: list[str]) -> tuple[list[tuple[int, int]], bool]:
    """Sizes of some images, and whether any has colours.

    Raises:
        ArgumentError: one cannot be read or decoded.
    """
    sizes, colours = [], False
    for file in found[:: max(1, len(found) // _OPENED)]:
        try:
            content = tf.io.read_file(os.fsencode(file))
            pixels = tf.io.decode_image(content, expand_animations=False).numpy()
        except tf.errors.OpError as error:
            raise ArgumentError(f"{file} {fault_of(error)}") from None
        sizes.append(pixels.shape[:2])
        grey = pixels.shape[2] < 3 or bool(np.all(pixels[..., :1] == pixels[..., :3]))
        colours = colours or not grey
    return sizes, colours


def _size(seen: list[tuple[int, int]], base: str | None) -> tuple[int, int]:
    """As the images are, within limits."""
    height, width = (int(np.median([one[axis] for one in seen])) for axis in (0, 1))
    if base is not None:
        side = min(_LARGEST_FOR_BASE, max(_LEAST_FOR_BASE, min(height, width)))
        return side, side
    shrink = min(1.0, _LARGEST / max(height, width))
    return max(4, round(height * shrink)), max(4, round(width * shrink))


def _on(base: str, weights: str | None, settings: Settings) -> Settings:
    """The settings for a base, whose weights are seen to be there.

    Raises:
        ArgumentError: there is no such model, it takes no images of that size, or there are no weights for it.
    """
    made = _application(base)
    if weights is not None and not Path(weights).is_file():
        raise ArgumentError(
            f"there is no file {weights} with the weights of {base}: give one, or leave it out"
        )
    settings = replace(
        settings,
        base=base,
        family=made.__module__.split(".")[-1],
        weights=weights or "imagenet",
        learning_rate=1e-3,
        epochs=30,
    )
    options = {"include_top": False, "input_shape": (*settings.size, 3), "pooling": "avg"}
    with warnings.catch_warnings():
        # Of other weights Keras says layer by layer what does not fit.
        warnings.simplefilter("ignore")
        try:
            made(weights=settings.weights, **options)
        except Exception as error:  # noqa: BLE001 - what Keras raises where there is no network
            _check_size_for(base, made, options)
            raise _no_weights(base, weights, error) from None
    return settings


def _application(base: str) -> Callable[..., Any]:
    """The model of that name.

    Raises:
        ArgumentError: there is none.
    """
    known = sorted(
        name for name, made in vars(keras.applications).items() if name[0].isupper() and callable(made)
    )
    if base in known:
        made: Callable[..., Any] = getattr(keras.applications, base)
        return made
    by_small = {name.lower(): name for name in known}
    close = difflib.get_close_matches(str(base).lower(), by_small, n=1)
    hint = f"did you mean {by_small[close[0]]!r}?" if close else f"there are {', '.join(known)}"
    raise ArgumentError(f"base={base!r} is not a model in keras.applications; {hint}")


def _check_size_for(base: str, made: Callable[..., Any], options: dict[str, Any]) -> None:
    """The base can be built at all: then it was the weights that failed.

    Raises:
        ArgumentError: it takes no images of this size.
    """
    try:
        made(weights=None, **options)
    except ValueError as error:
        height, width, _ = options["input_shape"]
        raise ArgumentError(
            f"{base} takes no images of {height} x {width} ({_first_line(error)}): give another --size"
        ) from None


def _no_weights(base: str, weights: str | None, error: Exception) -> ArgumentError:
    if weights is None:
        return ArgumentError(
            f"the weights of {base} are not in Keras' cache and cannot be downloaded ({_first_line(error)}): give a "
            "file with --weights, or leave out --base to train from scratch"
        )
    return ArgumentError(
        f"{weights} are not weights of {base} without its top ({_first_line(error)}): give a file that "
        f"keras.applications.{base}(include_top=False).save_weights wrote"
    )


def _first_line(error: Exception) -> str:
    """What Keras says, without the example and the list that follow it."""
    first = str(error).strip().partition("\n")[0]
    return first.partition(" Example error message")[0].rstrip(".:") or type(error).__name__
