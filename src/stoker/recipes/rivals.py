"""Models of scikit-learn that compete with a table's network, and how each becomes a Keras model to export."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import keras
import numpy as np
from keras import ops

from stoker.data.array_types import Array
from stoker.data.features import Features
from stoker.recipes import trees
from stoker.recipes.baselines import (
    BOOSTED,
    CONSTANT,
    LINEAR,
    MOST_CODES,
    PENALTIES,
    Estimator,
    answer,
    fit_quietly,
    linear_model,
    vectorizer,
)
from stoker.recipes.budget import Budget
from stoker.recipes.rival_answers import final_answer
from stoker.recipes.rival_training import (
    Rival,
    RivalKind,
    RivalTask,
    constant_rival,
    knows_all_classes,
    train_rivals,
)
from stoker.recipes.rows import Rows
from stoker.tf_internals.types import Model, Tensor

# Layers and operations of the models below. A column with such a name gets another input name.
_NAMES = {
    *("thresholds", "missing", "paths", "leaves", "decisions", "take", "reshape", "less_equal", "logical_or"),
    *("logical_and", "greater", "zeros_like", "get_item", "weights", "logits", "probabilities", "prediction"),
    *("embedding", "concatenate", "add", "negative", "multiply", "functional"),
}

# After how many steps of boosted trees the time is checked; the last is scikit-learn's default.
_TREES = (12, 25, 50, 100)
# Makes the answers, before softmax, from a Keras input for each column.
Margins: TypeAlias = Callable[[Mapping[str, Tensor]], Tensor]


@dataclass(frozen=True)
class _Task(RivalTask):
    """The task of a table's rivals."""

    features: Features


def table_rivals(
    features: Features,
    train: Rows,
    validation: Rows | None = None,
    *,
    classes: int = 0,
    balanced: bool = False,
    seed: int = 0,
    budget: Budget | None = None,
) -> list[Rival]:
    """Train a constant, a linear model and boosted trees on the columns of a table.

    Args:
        features: the features of the training dataset.
        train: the rows to learn from.
        validation: rows on which to choose the linear model's penalty, and from which to learn in the end.
        classes: how many classes the labels have; 0 for numbers.
        balanced: whether all classes count the same.
        seed: the seed of the boosted trees.
        budget: the available time.
    """
    task = _Task(classes, balanced, seed, budget or Budget(), features)
    kinds = [
        RivalKind(CONSTANT, [partial(constant_rival, task)], power=0.0),
        RivalKind(LINEAR, [partial(_linear, task, penalty) for penalty in PENALTIES]),
    ]
    if any(features[name].kind != "text" for name in features):
        kinds.append(RivalKind(BOOSTED, [partial(_boosted, task)]))
    return train_rivals(kinds, train, validation, task)


def _linear(task: _Task, penalty: float, train: Rows) -> Rival:
    encoder = _LinearColumns(task.features, train)
    model = linear_model(task.classes, task.balanced, penalty)
    fit_quietly(model, encoder.encode(train), train.labels)
    build = None
    if knows_all_classes(model, task.classes) and not encoder.has_texts:
        build = _builder(task, lambda inputs: encoder.margins(model, inputs))
    return Rival(LINEAR, lambda rows: answer(model, encoder.encode(rows), task.classes), build)


def _boosted(task: _Task, train: Rows) -> Rival:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    features, classes = task.features, task.classes
    names = [name for name in features if features[name].kind != "text"]
    sizes = [len(features[name].vocabulary or ()) for name in names]
    few = [size in range(1, MOST_CODES) for size in sizes]
    kind: Callable[..., Estimator] = (
        HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    )
    options = {"class_weight": "balanced" if task.balanced else None} if classes else {}
    model = kind(random_state=task.seed, categorical_features=few, warm_start=True, **options)

    def columns(rows: Rows) -> Array:
        return np.stack([rows.inputs[name] for name in names], 1).astype(float)

    _grow_trees(model, columns(train), train.labels, task.budget)
    build = None
    if knows_all_classes(model, classes) and trees.can_convert(model):
        taken = [
            trees.TreeColumn(name, size, tuple(np.unique(train.inputs[name]).tolist()))
            if short
            else trees.TreeColumn(name, 0)
            for name, size, short in zip(names, sizes, few, strict=True)
        ]
        build = _builder(task, lambda inputs: trees.boosted_margins(model, taken, inputs))
    return Rival(BOOSTED, lambda rows: answer(model, columns(rows), classes), build)


def _grow_trees(model: Estimator, rows: Array, labels: Array, budget: Budget) -> None:
    """Train boosted trees. With a limit, train some at a time, to end when the time is up; the trees are the same."""
    for count in _TREES[-1:] if budget.time_s is None else _TREES:
        model.set_params(max_iter=count)
        fit_quietly(model, rows, labels)
        if model.n_iter_ < count:
            return
        if count < _TREES[-1] and budget.rivals_s() <= 0:
            budget.cut(f"No time for all trees: {BOOSTED} have {count} of at most {_TREES[-1]} steps.")
            return


def _builder(task: _Task, margins: Margins) -> Callable[[], Model]:
    def build() -> Model:
        inputs = table_inputs(task.features)
        return keras.Model(inputs, final_answer(margins(inputs), task.classes))

    return build


def table_inputs(features: Features) -> dict[str, Tensor]:
    """Return a Keras input for each column of a model in this module."""
    found: dict[str, Tensor] = features.inputs(avoid=_NAMES)
    return found


class _LinearColumns:
    """The columns of a table for a linear model: scaled numbers, flags for missing ones, categories one-hot."""

    def __init__(self, features: Features, train: Rows) -> None:
        self._features = features
        self._numbers = [name for name in features if features[name].kind not in ("text", "category")]
        self._categories = [name for name in features if features[name].kind == "category"]
        self._moments = {name: _moments(train.inputs[name].astype(float)) for name in self._numbers}
        texts = [name for name in features if features[name].kind == "text"]
        self._words: dict[str, Any] = {name: vectorizer().fit(list(train.inputs[name])) for name in texts}

    @property
    def has_texts(self) -> bool:
        """Whether words are among the columns, which have no Keras layer here."""
        return bool(self._words)

    def encode(self, rows: Rows) -> Any:
        """Return a sparse matrix with the columns side by side."""
        from scipy import sparse

        parts: list[Any] = []
        for name in self._numbers:
            values = rows.inputs[name].astype(float)
            mean, spread = self._moments[name]
            parts.append(np.stack([np.nan_to_num((values - mean) / spread), np.isnan(values)], 1))
        for name in self._categories:
            ids, size = rows.inputs[name], len(self._features[name].vocabulary or ())
            parts.append(sparse.csr_matrix((np.ones(len(ids)), (np.arange(len(ids)), ids)), (len(ids), size)))
        parts += [words.transform(list(rows.inputs[name])) for name, words in self._words.items()]
        return sparse.hstack([sparse.csr_matrix(part) for part in parts], "csr")

    def margins(self, model: Estimator, inputs: Mapping[str, Tensor]) -> Tensor:
        """Return the answers of the linear model over the raw columns, with the scaling inside its weights."""
        weights = np.atleast_2d(model.coef_).T
        offset = np.atleast_1d(model.intercept_).astype(float)
        parts = []
        if self._numbers:
            means, spreads = np.array([self._moments[name] for name in self._numbers]).T
            scaled, flags = weights[: 2 * len(means) : 2], weights[1 : 2 * len(means) : 2]
            slopes = scaled / spreads[:, None]
            moved = slopes * means[:, None]
            offset = offset - moved.sum(0)
            values = ops.stack([ops.cast(inputs[name], "float64") for name in self._numbers], axis=1)
            absent = ops.isnan(values)
            both = ops.concatenate(
                [ops.where(absent, ops.zeros_like(values), values), ops.cast(absent, "float64")], axis=1
            )
            dense = keras.layers.Dense(weights.shape[1], use_bias=False, dtype="float64", trainable=False)
            parts.append(dense(both))
            # A missing number counts as the mean, so its flag gives back what the offset has subtracted.
            dense.set_weights([np.concatenate([slopes, flags + moved])])
        at = 2 * len(self._numbers)
        for name in self._categories:
            size = len(self._features[name].vocabulary or ())
            lookup = keras.layers.Embedding(size, weights.shape[1], dtype="float64", trainable=False)
            parts.append(lookup(inputs[name]))
            lookup.set_weights([weights[at : at + size]])
            at += size
        total = parts[0] if len(parts) == 1 else keras.layers.Add(dtype="float64")(parts)
        return _shift(total, offset)


def _shift(total: Tensor, offset: Array) -> Tensor:
    """Add an offset for each output."""
    bias = keras.layers.EinsumDense(
        "bk,k->bk", (len(offset),), bias_axes="k", dtype="float64", trainable=False
    )
    moved = bias(total)
    bias.set_weights([np.ones(len(offset)), offset])
    return moved


def _moments(values: Array) -> tuple[float, float]:
    """Return the mean and the spread of the numbers that are not missing; 0 and 1 if there are none."""
    known = values[~np.isnan(values)]
    if not len(known):
        return 0.0, 1.0
    return float(known.mean()), float(known.std()) or 1.0
