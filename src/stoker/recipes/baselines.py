"""The models that a network has to beat: scikit-learn's, trained and tested on the same rows.

Each function gives the predictions for the test rows by name: probabilities of the classes, or numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from stoker.data.array_types import Array
from stoker.data.features import Features
from stoker.errors import StokerError
from stoker.recipes.rows import Rows

# A model of scikit-learn.
Estimator: TypeAlias = Any
# A NumPy array, or a sparse matrix of SciPy.
Matrix: TypeAlias = Any

CONSTANT = "constant"
LINEAR = "linear"
BOOSTED = "boosted trees"
TFIDF = "TF-IDF + linear"
SUPPORT = "support vectors"
_MOST_FOR_SUPPORT = 6_000
_FEW_ROWS = 10_000
_MOST_CODES = 254
_WORDS = 50_000


def check_installed() -> None:
    """Fail before training, not after it, if the baselines are not available.

    Raises:
        StokerError: scikit-learn is not installed.
    """
    import importlib.util

    if importlib.util.find_spec("sklearn") is None:
        raise StokerError(
            "recipes need scikit-learn for their baselines: install it with pip install 'stoker[recipes]'"
        )


def table_baselines(
    features: Features, train: Rows, test: Rows, *, classes: int = 0, balanced: bool = False, seed: int = 0
) -> dict[str, Array]:
    """A constant, a linear model and boosted trees, on the columns of a table.

    Args:
        features: of the training dataset.
        train: the rows to learn from.
        test: the rows to predict.
        classes: how many classes the labels have; 0 for numbers.
        balanced: all classes count the same.
        seed: of the boosted trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    found = {CONSTANT: _constant(train.labels, len(test), classes, balanced)}
    wide = _encode(features, train, test)
    found[LINEAR] = _linear(*wide, train.labels, classes, balanced)
    names = [name for name in features if features[name].kind != "text"]
    if names:
        kind: Callable[..., Estimator] = (
            HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        )
        options = {"class_weight": "balanced" if balanced else None} if classes else {}
        few = [len(features[name].vocabulary or ()) in range(1, _MOST_CODES) for name in names]
        trees = kind(random_state=seed, categorical_features=few, **options)
        plain = [np.stack([rows.inputs[name] for name in names], 1).astype(float) for rows in (train, test)]
        found[BOOSTED] = _answers(trees, plain[0], train.labels, plain[1], classes)
    return found


def text_baselines(train: Rows, test: Rows, *, classes: int, balanced: bool = False) -> dict[str, Array]:
    """A constant, and a linear model of the words' TF-IDF weights; inputs are texts as bytes."""
    return {
        CONSTANT: _constant(train.labels, len(test), classes, balanced),
        TFIDF: _linear(*_weights(train.inputs, test.inputs), train.labels, classes, balanced),
    }


def image_baselines(train: Rows, test: Rows, *, classes: int, balanced: bool = False) -> dict[str, Array]:
    """A constant, a linear model of the pixels and, where there are few rows, support vectors."""
    from sklearn.svm import SVC

    flat = [rows.inputs.reshape(len(rows), -1).astype(np.float32) / 255 for rows in (train, test)]
    found = {
        CONSTANT: _constant(train.labels, len(test), classes, balanced),
        LINEAR: _linear(flat[0], flat[1], train.labels, classes, balanced),
    }
    if len(train) <= _MOST_FOR_SUPPORT and len(np.unique(train.labels)) > 1:
        machine = SVC(class_weight="balanced" if balanced else None).fit(flat[0], train.labels)
        # It gives no probabilities; a softmax over its margins is good enough to compare losses.
        margins = machine.decision_function(flat[1])
        margins = np.stack([-margins, margins], 1) if margins.ndim == 1 else margins
        found[SUPPORT] = _all_classes(_softmax(margins), machine.classes_, classes)
    return found


def _softmax(margins: Array) -> Array:
    raised: Array = np.exp(margins - margins.max(1, keepdims=True))
    shares: Array = raised / raised.sum(1, keepdims=True)
    return shares


def _constant(labels: Array, rows: int, classes: int, balanced: bool) -> Array:
    if not classes:
        return np.full(rows, labels.mean())
    shares = np.bincount(labels, minlength=classes) / len(labels)
    return np.tile((shares > 0) / (shares > 0).sum() if balanced else shares, (rows, 1))


def _linear(train: Matrix, test: Matrix, labels: Array, classes: int, balanced: bool) -> Array:
    from sklearn.linear_model import LogisticRegression, Ridge

    if not classes:
        return _answers(Ridge(), train, labels, test, 0)
    model = LogisticRegression(max_iter=300, class_weight="balanced" if balanced else None)
    return _answers(model, train, labels, test, classes)


def _answers(model: Estimator, train: Matrix, labels: Array, test: Matrix, classes: int) -> Array:
    from threadpoolctl import threadpool_limits

    if classes and len(known := np.unique(labels)) == 1:
        # All rows to learn from have the same class.
        return _all_classes(np.ones((test.shape[0], 1)), known, classes)
    # With few rows, threads cost more than they gain.
    with warnings.catch_warnings(), threadpool_limits(1 if train.shape[0] < _FEW_ROWS else None):
        # A baseline that has not fully converged is good enough.
        warnings.simplefilter("ignore")
        model.fit(train, labels)
        if classes:
            return _all_classes(model.predict_proba(test), model.classes_, classes)
        numbers: Array = model.predict(test)
        return numbers


def _all_classes(probabilities: Array, known: Array, classes: int) -> Array:
    """A column for every class, also for those that no training row has."""
    whole = np.zeros((len(probabilities), classes))
    whole[:, known] = probabilities
    return whole


def _encode(features: Features, train: Rows, test: Rows) -> tuple[Matrix, Matrix]:
    """Columns for a linear model: numbers are scaled, categories and words get one column each."""
    from scipy import sparse

    parts: tuple[list[Matrix], list[Matrix]] = ([], [])
    for name in features:
        columns = train.inputs[name], test.inputs[name]
        if features[name].kind == "text":
            both = _weights(*columns)
        elif features[name].kind == "category":
            size = len(features[name].vocabulary or ())
            both = tuple(_one_hot(column, size) for column in columns)
        else:
            both = _scale(*columns)
        for part, one in zip(parts, both, strict=True):
            part.append(sparse.csr_matrix(one))
    return sparse.hstack(parts[0], "csr"), sparse.hstack(parts[1], "csr")


def _one_hot(ids: Array, size: int) -> Matrix:
    from scipy import sparse

    return sparse.csr_matrix((np.ones(len(ids)), (np.arange(len(ids)), ids)), (len(ids), size))


def _scale(train: Array, test: Array) -> tuple[Array, Array]:
    train, test = train.astype(float), test.astype(float)
    known = train[~np.isnan(train)]
    mean = known.mean() if len(known) else 0.0
    spread = known.std() if len(known) else 1.0
    first, second = (
        np.stack([np.nan_to_num((one - mean) / (spread or 1.0)), np.isnan(one)], 1) for one in (train, test)
    )
    return first, second


def _weights(train: Array, test: Array) -> tuple[Matrix, Matrix]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(
        max_features=_WORDS,
        ngram_range=(1, 2),
        sublinear_tf=True,
        decode_error="replace",
        token_pattern=r"(?u)\b\w+\b",
    )
    return words.fit_transform(list(train)), words.transform(list(test))
