"""Learn the classes of texts: read, train, compare, export.

    python train.py

After a crash, run it again to resume. After changing the networks, give it another directory to run in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import stoker
from stoker import recipes


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set."""

    data: str  # a folder with a folder for each class; with `column`, a table
    run: str  # the directory of this run
    column: str | None = None  # for a table: the column of the texts
    target: str | None = None  # for a table: the column of their classes
    sep: str = ","  # the separator of a CSV file
    encoding: str = "utf8"  # the encoding of the files
    max_tokens: int = 20_000  # the number of words in the vocabulary
    max_length: int = 300  # the number of words of a text that are read
    balanced: bool = False  # rare classes count as much as common ones
    networks: tuple[str, ...] = ("mean", "gru")  # the one that is best on the validation texts is taken
    width: int = 64
    dropout: float = 0.4
    learning_rate: float = 2e-3
    batch_size: int = 32
    epochs: int = 40
    patience: int = 4  # epochs without a gain before training ends
    held_out: float = 0.3  # half of it to choose the best network, half to test it
    group: str | None = None  # for a table: a column; rows with the same value in it are held out together
    time_column: str | None = None  # or one of dates or numbers: the latest rows are held out
    only: str | None = None  # export this model ("network", "TF-IDF + linear"), even if not the best
    seed: int = 0
    save_every: str | int = "5s"  # when to save, to resume after a crash; a number counts steps
    time_s: float | None = None  # time for everything, from reading the data to the finished bundle


def read(settings: Settings) -> list[tf.data.Dataset]:
    """Read the training texts as word ids and as strings, the validation texts and the test texts."""
    divided = settings.group or settings.time_column
    options: dict[str, Any] = {
        "batch_size": settings.batch_size,
        "seed": settings.seed,
        "validation_split": (settings.held_out / 2, settings.held_out / 2) if divided else settings.held_out,
        "group": settings.group,
        "time": settings.time_column,
        "column": settings.column,
        "label": settings.target,
        "sep": settings.sep,
        "encoding": settings.encoding,
        "label_mode": "int",
    }
    train, *_ = stoker.data.text(
        settings.data, max_tokens=settings.max_tokens, max_length=settings.max_length, **options
    )
    texts, *held_out = stoker.data.text(settings.data, **options)
    if divided:
        return [train, texts, *held_out]
    return [train, texts, held_out[0].shard(2, 0), held_out[0].shard(2, 1)]


def network(kind: str, train: tf.data.Dataset, settings: Settings) -> keras.Model:
    """Return a model that takes word ids; the export puts the vocabulary in front of it."""
    ids = keras.Input((None,), dtype="int64", name="words")
    # A text without words becomes one unknown word (id 1), because an empty set has no mean.
    nothing = keras.ops.all(keras.ops.equal(ids, 0), axis=1, keepdims=True)
    x = keras.ops.concatenate([ids, keras.ops.cast(nothing, "int64")], axis=1)
    size = train.vectorization.vocabulary_size()
    x = keras.layers.Embedding(size, settings.width, mask_zero=True)(x)
    if kind == "mean":
        x = keras.layers.GlobalAveragePooling1D()(x)
    else:
        x = keras.layers.Bidirectional(keras.layers.GRU(settings.width))(x)
    x = keras.layers.Dropout(settings.dropout)(x)
    x = keras.layers.Dense(settings.width, activation="relu")(x)
    x = keras.layers.Dropout(settings.dropout)(x)
    answer = keras.layers.Dense(len(train.class_names), activation="softmax", name="probabilities")(x)
    model = keras.Model(ids, answer)
    optimizer = keras.optimizers.Adam(settings.learning_rate)
    model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def train_one(
    kind: str, time_s: float | None, labels: np.ndarray, run: recipes.Run, settings: Settings
) -> recipes.Trained:
    """Train one network until it stops getting better on the validation texts."""
    progress = recipes.Progress(kind, time_s)
    keras.utils.set_random_seed(settings.seed)
    train, _, validation, _ = read(settings)

    def ids(texts: tf.Tensor, classes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return train.vectorization(texts)[:, : settings.max_length], classes

    chosen_by = validation.map(ids, num_parallel_calls=tf.data.AUTOTUNE)
    model = network(kind, train, settings)
    stopping = keras.callbacks.EarlyStopping(patience=settings.patience, restore_best_weights=True)
    slower = keras.callbacks.ReduceLROnPlateau(factor=0.3, patience=max(1, settings.patience // 2))
    weights = recipes.balanced_weights(labels, len(train.class_names)) if settings.balanced else None
    try:
        stoker.fit(
            model,
            train,
            validation_data=recipes.weighted(chosen_by, weights).cache().prefetch(tf.data.AUTOTUNE),
            epochs=settings.epochs,
            callbacks=[stopping, slower, progress],
            class_weight=weights,
            checkpoint=run.checkpoint(kind, settings.save_every),
            check=True,
            shuffle=False,
            verbose=0,
        )
    except KeyboardInterrupt as error:
        # Ctrl-C, or the time is up: keep the best weights so far.
        progress.interrupted(error)
        if stopping.best_weights is not None:
            model.set_weights(stopping.best_weights)
    return progress.trained(model)


def main(settings: Settings, budget: recipes.Budget | None = None) -> dict[str, Any]:
    """Train the networks and their rival; export and report what is best on the validation texts."""
    budget = budget or recipes.Budget(settings.time_s)
    with recipes.Run(settings.run, settings, "text", settings.data) as run:
        train, texts, validation, test = read(settings)
        seen, unseen = recipes.rows_of(texts, most=100_000), recipes.rows_of(test)
        held_out = recipes.rows_of(validation)
        classes = train.class_names
        rivals = recipes.text_rivals(
            seen,
            held_out,
            classes=len(classes),
            balanced=settings.balanced,
            seed=settings.seed,
            budget=budget,
        )
        tried = []
        for kind, time_s in budget.shares(settings.networks):
            tried.append(train_one(kind, time_s, seen.labels, run, settings))
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
            ids=lambda texts: train.vectorization(texts)[:, : settings.max_length],
            raw=texts,
            budget=budget,
        )


if __name__ == "__main__":
    main(Settings(data="reviews", run="runs/reviews"))
