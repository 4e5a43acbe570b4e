"""Learn the classes of images: read, train, compare, export.

    python train.py

After a crash, run it again to resume. After changing the networks, give it another directory to run in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import stoker
from stoker import recipes


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set."""

    data: str  # a folder with a folder for each class
    run: str  # the directory of this run
    size: tuple[int, int]  # height and width to resize the images to
    color_mode: str = "rgb"  # or "grayscale"
    augment: tuple[str, ...] = ()  # changes to the training images
    balanced: bool = False  # rare classes count as much as common ones
    filters: tuple[int, ...] = (32, 64, 128)  # the widths of the blocks of a network trained from scratch
    base: str = ""  # or a model of keras.applications to start from ...
    family: str = ""  # ... the module with its preprocessing ...
    weights: str = "imagenet"  # ... a file with its weights, if not the ones Keras has ...
    unfrozen: int = 20  # ... and how many of its last layers are trained in the end
    precision: str = "float32"  # or "mixed_float16", which GPUs with tensor cores multiply faster
    dropout: float = 0.3
    learning_rate: float = 2e-3
    batch_size: int = 32
    epochs: int = 60
    patience: int = 8  # epochs without a gain before training ends
    held_out: float = 0.3  # half of it to choose the best network, half to test it
    only: str | None = None  # export this model ("network", "linear"), even if not the best
    seed: int = 0
    save_every: str | int = "5s"  # when to save, to resume after a crash; a number counts steps
    time_s: float | None = None  # time for everything, from reading the data to the finished bundle


def read(settings: Settings) -> tuple[tf.data.Dataset, tf.data.Dataset, tf.data.Dataset]:
    """Read training, validation and test images, as bytes."""
    train, held_out = stoker.data.images(
        settings.data,
        image_size=settings.size,
        color_mode=settings.color_mode,
        augment=settings.augment,
        batch_size=settings.batch_size,
        seed=settings.seed,
        validation_split=settings.held_out,
    )
    return train, held_out.shard(2, 0), held_out.shard(2, 1)


def from_scratch(x: keras.KerasTensor, settings: Settings) -> keras.KerasTensor:
    """Stack blocks of convolutions, each with half the height and width of the one before."""
    x = keras.layers.Rescaling(1 / 255)(x)
    for number, filters in enumerate(settings.filters):
        x = keras.layers.MaxPooling2D()(x) if number else x
        for _ in range(2):
            x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            # The layer's averages must keep up within an epoch of a few dozen steps.
            x = keras.layers.BatchNormalization(momentum=0.9)(x)
            x = keras.layers.Activation("relu")(x)
    return keras.layers.GlobalAveragePooling2D()(x)


def from_base(x: keras.KerasTensor, phase: str, settings: Settings) -> keras.KerasTensor:
    """Put the input through a trained model and its preprocessing, frozen or with its last layers trainable."""
    base = getattr(keras.applications, settings.base)(
        include_top=False, weights=settings.weights, input_shape=(*settings.size, 3), pooling="avg"
    )
    base.trainable = phase == "top"
    for number, layer in enumerate(reversed(base.layers)):
        if number >= settings.unfrozen or isinstance(layer, keras.layers.BatchNormalization):
            layer.trainable = False
    # Its batch normalisation keeps the statistics of its own training images in both phases.
    prepare = getattr(keras.applications, settings.family).preprocess_input
    return base(prepare(keras.ops.cast(x, "float32")), training=False)


def network(phase: str, train: tf.data.Dataset, settings: Settings) -> keras.Model:
    """Return a model that takes images as bytes."""
    channels = 1 if settings.color_mode == "grayscale" else 3
    images = keras.Input((*settings.size, channels), dtype="uint8", name="image")
    x = from_base(images, phase, settings) if settings.base else from_scratch(images, settings)
    x = keras.layers.Dropout(settings.dropout)(x)
    classes = len(train.class_names)
    answer = keras.layers.Dense(classes, activation="softmax", dtype="float32", name="probabilities")(x)
    return compiled(keras.Model(images, answer), phase, settings)


def compiled(model: keras.Model, phase: str, settings: Settings) -> keras.Model:
    """Compile the model for training."""
    optimizer = keras.optimizers.Adam(settings.learning_rate / (20 if phase == "top" else 1))
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def new_layers(model: keras.Model, settings: Settings) -> tuple[keras.Model, keras.Model]:
    """Return the base, and the layers after it as a model that shares their weights with `model`."""
    dropout, probabilities = model.layers[-2:]
    features = keras.Input(dropout.input.shape[1:])
    head = keras.Model(features, probabilities(dropout(features)))
    return keras.Model(model.input, dropout.input), compiled(head, "head", settings)


def train_one(
    phase: str,
    time_s: float | None,
    before: recipes.Trained | None,
    labels: np.ndarray,
    run: recipes.Run,
    settings: Settings,
) -> recipes.Trained:
    """Train one phase, until the network stops getting better on the validation images."""
    progress = recipes.Progress(phase, time_s)
    keras.utils.set_random_seed(settings.seed)
    train, validation, _ = read(settings)
    learned, chosen_by = train, validation
    with recipes.precision(settings.precision):
        model = network(phase, train, settings)
        base, learner = new_layers(model, settings) if phase == "head" else (None, model)
    if before is not None:
        model.set_weights(before.model.get_weights())
    stopping = keras.callbacks.EarlyStopping(patience=settings.patience, restore_best_weights=True)
    slower = keras.callbacks.ReduceLROnPlateau(factor=0.3, patience=max(2, settings.patience // 2))
    weights = recipes.balanced_weights(labels, len(train.class_names)) if settings.balanced else None
    try:
        if base is not None:
            # A frozen base gives the same answers in every epoch: compute them once, without augmentation.
            learned, chosen_by, _ = read(replace(settings, augment=()))
            size, seed = settings.batch_size, settings.seed
            learned = recipes.asked_once(base, learned, progress, shuffle=True, batch_size=size, seed=seed)
            chosen_by = recipes.asked_once(base, chosen_by, progress, batch_size=size, seed=seed)
        stoker.fit(
            learner,
            learned,
            validation_data=recipes.weighted(chosen_by, weights),
            epochs=settings.epochs,
            callbacks=[stopping, slower, progress],
            class_weight=weights,
            checkpoint=run.checkpoint(phase, settings.save_every),
            check=learner is model,
            shuffle=False,
            verbose=0,
        )
    except KeyboardInterrupt as error:
        # Ctrl-C, or the time is up: keep the best weights so far.
        progress.interrupted(error)
        if stopping.best_weights is not None:
            learner.set_weights(stopping.best_weights)
    if settings.precision != "float32":
        # The model may be served on a device without float16.
        trained, model = model, network(phase, train, settings)
        for weight, value in zip(model.weights, trained.weights, strict=True):
            weight.assign(value)
    return progress.trained(model)


def main(settings: Settings, budget: recipes.Budget | None = None) -> dict[str, Any]:
    """Train the network and its rivals; export and report what is best on the validation images."""
    budget = budget or recipes.Budget(settings.time_s)
    with recipes.Run(settings.run, settings, "image", settings.data) as run:
        # Without augmentation: a changed image would not be recognised among the test images.
        train, validation, test = read(replace(settings, augment=()))
        seen, unseen = recipes.rows_of(train, most=20_000), recipes.rows_of(test)
        held_out = recipes.rows_of(validation)
        classes = train.class_names
        rivals = recipes.image_rivals(
            seen,
            held_out,
            classes=len(classes),
            balanced=settings.balanced,
            seed=settings.seed,
            budget=budget,
        )
        tried: list[recipes.Trained] = []
        # From scratch, there is one phase; from a base, first only the new layers are trained, then the last layers,
        # too.
        for phase, time_s in budget.shares(("head", "top") if settings.base else ("convolutions",)):
            before = tried[-1] if tried else None
            tried.append(train_one(phase, time_s, before, seen.labels, run, settings))
            if tried[-1].stopped == "interrupted":
                break
        return run.conclude(
            tried,
            rivals,
            train,
            seen,
            unseen,
            validation=held_out,
            only=settings.only,
            classes=classes,
            balanced=settings.balanced,
            budget=budget,
        )


if __name__ == "__main__":
    main(Settings(data="photos", run="runs/photos", size=(96, 96)))
