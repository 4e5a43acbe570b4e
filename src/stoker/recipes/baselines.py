"""The models that a network has to beat: those of scikit-learn, trained and tested on the same rows.

Each function gives the predictions for the test rows by name: probabilities of the classes, or numbers.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import numpy as np

from stoker.data.array_types import Array
from stoker.data.features import Features
from stoker.errors import StokerError
from stoker.processors import count_free_processors
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
MOST_FOR_SUPPORT = 6_000
_FEW_ROWS = 10_000
MOST_CODES = 254
# The penalties of a table's linear model; the middle one is scikit-learn's default.
PENALTIES = (0.1, 1.0, 10.0)
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


def import_models() -> None:
    """Import scikit-learn's models, so that these seconds do not count towards the first training."""
    import sklearn.ensemble
    import sklearn.feature_extraction.text
    import sklearn.linear_model
    import sklearn.svm  # noqa: F401


def table_baselines(
    features: Features, train: Rows, test: Rows, *, classes: int = 0, balanced: bool = False, seed: int = 0
) -> dict[str, Array]:
    """Return the answers of `table_rivals` for the test rows, by name."""
    from stoker.recipes.rivals import table_rivals

    rivals = table_rivals(features, train, classes=classes, balanced=balanced, seed=seed)
    return {one.name: one.predict(test) for one in rivals}


def text_baselines(train: Rows, test: Rows, *, classes: int, balanced: bool = False) -> dict[str, Array]:
    """Return the answers of a constant and of a linear model of the words' TF-IDF weights, for texts as bytes."""
    return {
        CONSTANT: constant(train.labels, len(test), classes, balanced),
        TFIDF: _linear(*_weights(train.inputs, test.inputs), train.labels, classes, balanced),
    }


def image_baselines(train: Rows, test: Rows, *, classes: int, balanced: bool = False) -> dict[str, Array]:
    """Return the answers of a constant, a linear model of the pixels and, if there are few rows, support vectors."""
    from sklearn.svm import SVC

    flat = [rows.inputs.reshape(len(rows), -1).astype(np.float32) / 255 for rows in (train, test)]
    found = {
        CONSTANT: constant(train.labels, len(test), classes, balanced),
        LINEAR: _linear(flat[0], flat[1], train.labels, classes, balanced),
    }
    if len(train) <= MOST_FOR_SUPPORT and len(np.unique(train.labels)) > 1:
        machine = SVC(class_weight="balanced" if balanced else None).fit(flat[0], train.labels)
        found[SUPPORT] = support_answers(machine, flat[1], classes)
    return found


def support_answers(machine: Estimator, rows: Matrix, classes: int) -> Array:
    """Return the answers of support vectors: a softmax over their margins, which is good enough to compare losses."""
    margins = machine.decision_function(rows)
    margins = np.stack([-margins, margins], 1) if margins.ndim == 1 else margins
    return _fill_in_classes(_softmax(margins), machine.classes_, classes)


def _softmax(margins: Array) -> Array:
    raised: Array = np.exp(margins - margins.max(1, keepdims=True))
    shares: Array = raised / raised.sum(1, keepdims=True)
    return shares


def constant(labels: Array, rows: int, classes: int, balanced: bool) -> Array:
    """Return the same answer for every row: the shares of the classes, or the mean."""
    if not classes:
        return np.full(rows, labels.mean())
    shares = np.bincount(labels, minlength=classes) / len(labels)
    return np.tile((shares > 0) / (shares > 0).sum() if balanced else shares, (rows, 1))


def linear_model(classes: int, balanced: bool, penalty: float = 1.0) -> Estimator:
    """Return an untrained linear model; the larger the penalty, the smaller its weights."""
    from sklearn.linear_model import LogisticRegression, Ridge

    if not classes:
        return Ridge(alpha=penalty)
    return LogisticRegression(C=1 / penalty, max_iter=300, class_weight="balanced" if balanced else None)


def _linear(train: Matrix, test: Matrix, labels: Array, classes: int, balanced: bool) -> Array:
    if classes and len(known := np.unique(labels)) == 1:
        # All rows to learn from have the same class.
        return _fill_in_classes(np.ones((test.shape[0], 1)), known, classes)
    model = linear_model(classes, balanced)
    fit_quietly(model, train, labels)
    return answer(model, test, classes)


def fit_quietly(model: Estimator, train: Matrix, labels: Array) -> None:
    """Train a model of scikit-learn."""
    with warnings.catch_warnings(), _limit_threads(train.shape[0]):
        # A baseline that has not fully converged is good enough.
        warnings.simplefilter("ignore")
        model.fit(train, labels)


def _limit_threads(rows: int) -> AbstractContextManager[object]:
    """Limit threads: to one with few rows; otherwise OpenMP's, to the processors that other programs leave free.

    The number of OpenMP's threads changes no bit. With many rows, BLAS keeps its own number, on which its sums depend.
    """
    from threadpoolctl import threadpool_limits

    few = rows < _FEW_ROWS
    limits: AbstractContextManager[object] = (
        threadpool_limits(1) if few else threadpool_limits(count_free_processors(), user_api="openmp")
    )
    return limits


def answer(model: Estimator, rows: Matrix, classes: int) -> Array:
    """Return a model's answers: a probability for every class, or a number."""
    with _limit_threads(rows.shape[0]):
        if classes:
            return _fill_in_classes(model.predict_proba(rows), model.classes_, classes)
        numbers: Array = model.predict(rows)
        return numbers


def _fill_in_classes(probabilities: Array, known: Array, classes: int) -> Array:
    """Add a column for each class that no training row has."""
    whole = np.zeros((len(probabilities), classes))
    whole[:, known] = probabilities
    return whole


def vectorizer() -> Estimator:
    """Return a vectorizer that gives TF-IDF weights of words and pairs of words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(
        max_features=_WORDS,
        ngram_range=(1, 2),
        sublinear_tf=True,
        decode_error="replace",
        token_pattern=r"(?u)\b\w+\b",
    )


def _weights(train: Array, test: Array) -> tuple[Matrix, Matrix]:
    words = vectorizer()
    return words.fit_transform(list(train)), words.transform(list(test))
