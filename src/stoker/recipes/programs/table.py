"""Predict a column of a table: read, train, compare, export.

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

# The names of the layers below: a column with such a name gets another input name.
LAYERS = {
    *("waves", "multiply", "sin", "cos", "sines", "mixed", "flatten", "both"),
    *("dense", "dropout", "probabilities", "prediction"),
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that can be set."""

    data: str  # a file, a glob or a folder
    target: str  # the column to predict
    run: str  # the directory of this run
    format: str = "csv"  # or "parquet", "jsonl"
    sep: str = ","  # the separator of a CSV file
    encoding: str = "utf8"  # the encoding of a CSV file
    missing: tuple[str, ...] = ()  # texts that stand for missing values
    types: tuple[tuple[str, str], ...] = ()  # kinds of columns, such as ("day", "date")
    lenient: bool = True  # read units, currencies and any form of date; a cell that cannot be read is missing
    left_out: tuple[tuple[str, str], ...] = ()  # columns left out of training, and why, for the report
    columns: tuple[str, ...] | None = None  # columns to learn from, with the target; None for all
    classes: bool = False  # the target is a class, not a number
    balanced: bool = False  # rare classes count as much as common ones
    networks: tuple[str, ...] = ("plain", "periodic")  # the one that is best on the validation rows is taken
    hidden: tuple[int, ...] = (128, 64)
    dropout: float = 0.1
    learning_rate: float = 2e-3
    batch_size: int = 64
    epochs: int = 200
    patience: int = 16  # epochs without a gain before training ends
    held_out: float = 0.3  # half of it to choose the best network, half to test it
    all_rows: bool = False  # once it is scored, train the chosen model again on all rows for the bundle
    group: str | None = None  # a column: rows with the same value in it are held out together
    time_column: str | None = None  # or one of dates or numbers: the latest rows are held out
    only: str | None = None  # export this model ("network", "linear", "boosted trees"), even if not the best
    seed: int = 0
    save_every: str | int = "5s"  # when to save, to resume after a crash; a number counts steps
    time_s: float | None = None  # time for everything, from reading the data to the finished bundle


def read(settings: Settings) -> tuple[tf.data.Dataset, tf.data.Dataset, tf.data.Dataset]:
    """Read training, validation and test rows."""
    options = {"sep": settings.sep, "encoding": settings.encoding} if settings.format == "csv" else {}
    divided = settings.group or settings.time_column
    parts = getattr(stoker.data, settings.format)(
        settings.data,
        label=settings.target,
        batch_size=settings.batch_size,
        shuffle=True,
        seed=settings.seed,
        validation_split=(settings.held_out / 2, settings.held_out / 2) if divided else settings.held_out,
        group=settings.group,
        time=settings.time_column,
        columns=settings.columns,
        missing=settings.missing,
        types=dict(settings.types),
        lenient=settings.lenient,
        label_mode="int" if settings.classes else "number",
        **options,
    )
    if divided:
        train, validation, test = parts
        return train, validation, test
    train, held_out = parts
    return train, held_out.shard(2, 0), held_out.shard(2, 1)


def periodic(x: keras.KerasTensor) -> keras.KerasTensor:
    """Encode each number as sines and cosines of learned frequencies, from which networks learn steps and bends."""
    width = x.shape[-1]
    near_zero = keras.initializers.RandomNormal(stddev=0.3)
    waves = keras.layers.EinsumDense("bf,fk->bfk", (width, 8), kernel_initializer=near_zero, name="waves")(x)
    waves = keras.layers.Concatenate(name="sines")(
        [keras.ops.sin(6.2832 * waves), keras.ops.cos(6.2832 * waves)]
    )
    mixed = keras.layers.EinsumDense(
        "bfk,fkd->bfd", (width, 8), bias_axes="fd", activation="relu", name="mixed"
    )
    return keras.layers.Concatenate(name="both")([x, keras.layers.Flatten()(mixed(waves))])


def network(kind: str, train: tf.data.Dataset, labels: np.ndarray, settings: Settings) -> keras.Model:
    """Return a model that takes the columns of the file; its first layers prepare them."""
    inputs = train.features.inputs(avoid=LAYERS)
    x = train.features.encode(inputs)
    if kind == "periodic":
        x = periodic(x)
    for width in settings.hidden:
        x = keras.layers.Dense(width, activation="relu")(x)
        x = keras.layers.Dropout(settings.dropout)(x)
    optimizer = keras.optimizers.AdamW(settings.learning_rate, weight_decay=1e-3)
    if settings.classes:
        answer = keras.layers.Dense(len(train.class_names), activation="softmax", name="probabilities")(x)
        model = keras.Model(inputs, answer)
        model.compile(optimizer, "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model
    # The network learns the scaled target, and predicts in the target's own units.
    mean, variance = float(labels.mean()), float(labels.var()) or 1.0
    answer = keras.layers.Dense(1)(x)
    answer = keras.layers.Normalization(
        axis=None, mean=mean, variance=variance, invert=True, name="prediction"
    )(answer)
    model = keras.Model(inputs, answer)
    model.compile(optimizer, "mse", loss_weights=[1 / variance], metrics=["mae"])
    return model


def train_one(
    kind: str, time_s: float | None, labels: np.ndarray, run: recipes.Run, settings: Settings
) -> recipes.Trained:
    """Train one network until it stops getting better on the validation rows."""
    progress = recipes.Progress(kind, time_s)
    keras.utils.set_random_seed(settings.seed)
    train, validation, _ = read(settings)
    model = network(kind, train, labels, settings)
    stopping = keras.callbacks.EarlyStopping(patience=settings.patience, restore_best_weights=True)
    slower = keras.callbacks.ReduceLROnPlateau(factor=0.3, patience=settings.patience // 3)
    weights = recipes.balanced_weights(labels, len(train.class_names)) if settings.balanced else None
    try:
        stoker.fit(
            model,
            train,
            validation_data=recipes.weighted(validation, weights),
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
    trained = progress.trained(model)
    return replace(trained, learn_again=lambda rows: learn_again(trained, rows, run, settings))


def learn_again(
    trained: recipes.Trained, rows: recipes.Rows, run: recipes.Run, settings: Settings
) -> keras.Model:
    """Train the same network on these rows, for as many epochs and with the learning rates that worked best."""
    keras.utils.set_random_seed(settings.seed)
    train, _, _ = read(settings)
    model = network(trained.name, train, rows.labels, settings)
    best = int(np.argmin([epoch["val_loss"] for epoch in trained.curves]))
    rates = [epoch["learning_rate"] for epoch in trained.curves[: best + 1]]
    everything = tf.data.Dataset.from_tensor_slices((dict(rows.inputs), rows.labels))
    stoker.fit(
        model,
        everything.shuffle(len(rows), seed=settings.seed).batch(settings.batch_size),
        epochs=best + 1,
        callbacks=[keras.callbacks.LearningRateScheduler(lambda epoch: rates[epoch])],
        class_weight=recipes.balanced_weights(rows.labels, len(train.class_names))
        if settings.balanced
        else None,
        checkpoint=run.checkpoint(f"{trained.name}-all-rows", settings.save_every),
        shuffle=False,
        verbose=0,
    )
    return model


def main(settings: Settings, budget: recipes.Budget | None = None) -> dict[str, Any]:
    """Train the networks and their rivals; export and report what is best on the validation rows."""
    budget = budget or recipes.Budget(settings.time_s)
    with recipes.Run(settings.run, settings, "table", settings.data) as run:
        train, validation, test = read(settings)
        seen, unseen = (
            recipes.rows_of(train, most=None if settings.all_rows else 100_000),
            recipes.rows_of(test),
        )
        held_out = recipes.rows_of(validation)
        classes = train.class_names if settings.classes else None
        rivals = recipes.table_rivals(
            train.features,
            seen,
            held_out,
            classes=len(classes or ()),
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
            budget=budget,
            all_rows=settings.all_rows,
        )


if __name__ == "__main__":
    main(Settings(data="sales.csv", target="price", run="runs/sales"))
