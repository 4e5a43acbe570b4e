"""`stoker.recipes.image`: choose the settings of the program that learns the classes of images."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import keras
import numpy as np
import tensorflow as tf

from stoker.data import augmenting
from stoker.data.class_folders import class_files
from stoker.data.image_files import fault_of
from stoker.data.image_reader import check_size
from stoker.data.paths import IMAGES, local_tree
from stoker.errors import ArgumentError, first_line, suggest
from stoker.recipes.arguments import RunOptions, RunRequest, find_chosen_model, path_of
from stoker.recipes.baselines import LINEAR
from stoker.recipes.beginning import begin
from stoker.recipes.data_checks import are_uneven, batch_size, check_classes, report_odd_classes
from stoker.recipes.precisions import choose_precision
from stoker.recipes.programs.image import Settings, read
from stoker.recipes.scores import Result
from stoker.recipes.winner import NETWORK
from stoker.tf_internals.types import Model

if TYPE_CHECKING:
    from typing_extensions import Unpack

_FILTERS = (32, 64, 128, 256)
_LARGEST, _LARGEST_FOR_BASE, _LEAST_FOR_BASE = 96, 160, 96
# How many images are opened to learn their size and colours.
_OPENED = 40
# The names that `only` may have, and the report's names for them.
_MODELS = {"network": NETWORK, "linear": LINEAR}


def image(
    data: str | os.PathLike[str],
    *,
    size: tuple[int, int] | None = None,
    base: str | None = None,
    weights: str | None = None,
    augment: Sequence[str] | None = None,
    only: str | None = None,
    **options: Unpack[RunOptions],
) -> Result | None:
    """Train, compare and export a network that classifies images.

    Args:
        data: a folder with a folder for each class.
        size: height and width to resize the images to; by default their own, but at most 96 pixels.
        base: a model of `keras.applications` to start from, such as "MobileNetV2". First a new head is trained on it,
            then its last layers, too. By default, a small network is trained from scratch.
        weights: a file with the weights of the base, if not those that Keras has or downloads.
        augment: changes to the training images, as `stoker.data.images` names them; by default they depend on whether
            the images have colours.
        only: export this model, "network" or "linear", even if another one is better.

    The other arguments, what is returned and what is raised are those of `table`.
    """
    path = path_of(data)
    run = RunRequest(**options)
    check_size(size, "size")
    found = class_files(local_tree(path, IMAGES), IMAGES)
    seen, colours = _inspect([file.path for file in found])
    classes = np.array([file.class_name for file in found])
    check_classes(f"the class in {path}", classes, None)
    report_odd_classes(classes, None)
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
        balanced=are_uneven(classes),
        precision=choose_precision(),
        batch_size=batch_size(len(found), 16 if len(found) < 1000 else 32),
        only=find_chosen_model(only, _MODELS),
        seed=run.seed,
        time_s=run.time_s,
    )
    blocks = max(1, min(len(_FILTERS), int(np.log2(min(settings.size))) - 1))
    settings = replace(settings, filters=_FILTERS[:blocks])
    if base is not None:
        settings = _on(base, weights, settings)
    elif weights is not None:
        raise ArgumentError("--weights needs --base: name the model that they belong to")
    # Fail before a run is made if an image cannot be read. The run finds these images in the cache.
    read(settings)
    files = [Path(file.path) for file in found] + ([] if weights is None else [Path(weights)])
    return begin("image", settings, run, files, [Path(path).name])


def _inspect(found: list[str]) -> tuple[list[tuple[int, int]], bool]:
    """Return the sizes of some images, and whether any of them has colours.

    Raises:
        ArgumentError: an image cannot be read or decoded.
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
    """Return the median size of the images, within limits."""
    height, width = (int(np.median([one[axis] for one in seen])) for axis in (0, 1))
    if base is not None:
        side = min(_LARGEST_FOR_BASE, max(_LEAST_FOR_BASE, min(height, width)))
        return side, side
    shrink = min(1.0, _LARGEST / max(height, width))
    return max(4, round(height * shrink)), max(4, round(width * shrink))


def _on(base: str, weights: str | None, settings: Settings) -> Settings:
    """Return the settings for a base, after checking that its weights are available.

    Raises:
        ArgumentError: there is no such model, it does not take images of that size, or its weights are missing.
    """
    build = _application(base)
    if weights is not None and not Path(weights).is_file():
        raise ArgumentError(
            f"there is no file {weights} with the weights of {base}: give one, or leave it out"
        )
    settings = replace(
        settings,
        base=base,
        family=build.__module__.split(".")[-1],
        weights=weights or "imagenet",
        learning_rate=1e-3,
        epochs=30,
    )
    with warnings.catch_warnings():
        # Keras warns about weights that do not fit, layer by layer.
        warnings.simplefilter("ignore")
        try:
            build(weights=settings.weights, include_top=False, input_shape=(*settings.size, 3), pooling="avg")
        except Exception as error:  # noqa: BLE001 - Keras raises it if there is no network
            _check_size_for(base, build, settings.size)
            raise _explain_missing_weights(base, weights, error) from None
    return settings


def _application(base: str) -> Callable[..., Model]:
    """Return the function that builds the model of that name.

    Raises:
        ArgumentError: there is no such model.
    """
    known = sorted(
        name for name, build in vars(keras.applications).items() if name[0].isupper() and callable(build)
    )
    if base in known:
        build: Callable[..., Model] = getattr(keras.applications, base)
        return build
    hint = suggest(str(base), known) or f"; the models are {', '.join(known)}"
    raise ArgumentError(f"base={base!r} is not a model in keras.applications{hint}")


def _check_size_for(base: str, build: Callable[..., Model], size: tuple[int, int]) -> None:
    """Check that the base can be built without weights.

    Raises:
        ArgumentError: the base does not take images of this size.
    """
    try:
        build(weights=None, include_top=False, input_shape=(*size, 3), pooling="avg")
    except ValueError as error:
        height, width = size
        raise ArgumentError(
            f"{base} takes no images of {height} x {width} ({_first_sentence(error)}): give another --size"
        ) from None


def _explain_missing_weights(base: str, weights: str | None, error: Exception) -> ArgumentError:
    if weights is None:
        return ArgumentError(
            f"the weights of {base} are not in Keras' cache and cannot be downloaded ({_first_sentence(error)}): give "
            "a file with --weights, or leave out --base to train from scratch"
        )
    return ArgumentError(
        f"{weights} are not weights of {base} without its top ({_first_sentence(error)}): give a file that "
        f"keras.applications.{base}(include_top=False).save_weights wrote"
    )


def _first_sentence(error: Exception) -> str:
    """Return the first sentence of Keras' message, without the example and the list that follow."""
    return first_line(error).partition(" Example error message")[0].rstrip(".:") or type(error).__name__
