"""What a network has to beat: scikit-learn's models, trained on the same rows and asked about the same ones.

Each function gives the predictions for the test rows by name: probabilities of the classes, or numbers.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from stoker.errors import StokerError
from stoker.recipes.rows import Rows

CONSTANT = "constant"
LINEAR = "linear"
BOOSTED = "boosted trees"
TFIDF = "TF-IDF + linear"
SUPPORT = "support vectors"
# More rows than these make a baseline slow, hardly better.
MOST_ROWS = 100_000
_MOST_FOR_SUPPORT = 6_000
_FEW_ROWS = 10_000
_MOST_CODES = 254
_WORDS = 50_000


def demand() -> None:
    """Say before the training, not after it, that the baselines cannot be had.

    Raises:
        StokerError: scikit-learn is not installed.
    """
    import importlib.util

    if importlib.util.find_spec("sklearn") is None:
        raise StokerError(
            "recipes compare with scikit-learn's models: install them with pip install 'stoker[recipes]'"
        )


def table_baselines(
    features: Any, train: Rows, test: Rows, *, classes: int = 0, balanced: bool = False, seed: int = 0
) -> dict[str, Any]:
    """A constant, a linear model and boosted trees, on the columns of a table.

    Args:
        features: of the training dataset: the kinds of the columns.
        train: the rows to learn from.
        test: the rows to predict.
        classes: how many classes the labels have; 0 for numbers.
        balanced: all classes count alike.
        seed: of what is drawn.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    found = {CONSTANT: _constant(train.labels, len(test), classes, balanced)}
    wide = _encoded(features, train, test)
    found[LINEAR] = _linear(*wide, train.labels, classes, balanced)
    names = [name for name in features if features[name].kind != "text"]
    if names:
        kind: Any = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        options = {"class_weight": "balanced" if balanced else None} if classes else {}
        few = [len(features[name].vocabulary or ()) in range(1, _MOST_CODES) for name in names]
        trees = kind(random_state=seed, categorical_features=few, **options)
        plain = [np.stack([rows.inputs[name] for name in names], 1).astype(float) for rows in (train, test)]
        found[BOOSTED] = _answers(trees, plain[0], train.labels, plain[1], classes)
    return found


def text_baselines(train: Rows, test: Rows, *, classes: int, balanced: bool = False) -> dict[str, Any]:
    """A constant, and a linear model of the words' TF-IDF weights; inputs are texts as bytes."""
    return {
        CONSTANT: _constant(train.labels, len(test), classes, balanced),
        TFIDF: _linear(*_weights(train.inputs, test.inputs), train.labels, classes, balanced),
    }


def image_baselines(train: Rows, test: Rows, *, classes: int, balanced: bool = False) -> dict[str, Any]:
    """A constant, a linear model of the pixels and, where there are few rows, support vectors."""
    from sklearn.svm import SVC

    flat = [rows.inputs.reshape(len(rows), -1).astype(np.float32) / 255 for rows in (train, test)]
    found = {
        CONSTANT: _constant(train.labels, len(test), classes, balanced),
        LINEAR: _linear(flat[0], flat[1], train.labels, classes, balanced),
    }
    if len(train) <= _MOST_FOR_SUPPORT and len(np.unique(train.labels)) > 1:
        machine = SVC(class_weight="balanced" if balanced else None).fit(flat[0], train.labels)
        # It has no probabilities of its own; those of a softmax over its margins do for comparing losses.
        margins = machine.decision_function(flat[1])
        margins = np.stack([-margins, margins], 1) if margins.ndim == 1 else margins
        found[SUPPORT] = _all_classes(_softmax(margins), machine.classes_, classes)
    return found


def _softmax(margins: Any) -> Any:
    raised = np.exp(margins - margins.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def _constant(labels: Any, rows: int, classes: int, balanced: bool) -> Any:
    if not classes:
        return np.full(rows, labels.mean())
    shares = np.bincount(labels, minlength=classes) / len(labels)
    return np.tile((shares > 0) / (shares > 0).sum() if balanced else shares, (rows, 1))


def _linear(train: Any, test: Any, labels: Any, classes: int, balanced: bool) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    if not classes:
        return _answers(Ridge(), train, labels, test, 0)
    model = LogisticRegression(max_iter=300, class_weight="balanced" if balanced else None)
    return _answers(model, train, labels, test, classes)


def _answers(model: Any, train: Any, labels: Any, test: Any, classes: int) -> Any:
    from threadpoolctl import threadpool_limits

    if classes and len(known := np.unique(labels)) == 1:
        # All there is to learn from is of one class.
        return _all_classes(np.ones((test.shape[0], 1)), known, classes)
    # For few rows, threads cost more than they bring.
    with warnings.catch_warnings(), threadpool_limits(1 if train.shape[0] < _FEW_ROWS else None):
        # A baseline that has not quite converged is still one.
        warnings.simplefilter("ignore")
        model.fit(train, labels)
        if not classes:
            return model.predict(test)
        return _all_classes(model.predict_proba(test), model.classes_, classes)


def _all_classes(probabilities: Any, known: Any, classes: int) -> Any:
    """A column for every class, also for those without a row to learn from."""
    whole: Any = np.zeros((len(probabilities), classes))
    whole[:, known] = probabilities
    return whole


def _encoded(features: Any, train: Rows, test: Rows) -> tuple[Any, Any]:
    """Columns as a linear model wants them: numbers scaled, categories and words one column each."""
    from scipy import sparse

    parts: tuple[list[Any], list[Any]] = ([], [])
    for name in features:
        columns = train.inputs[name], test.inputs[name]
        if features[name].kind == "text":
            both = _weights(*columns)
        elif features[name].kind == "category":
            size = len(features[name].vocabulary)
            both = tuple(_one_hot(column, size) for column in columns)
        else:
            both = _scaled(*columns)
        for part, one in zip(parts, both, strict=True):
            part.append(sparse.csr_matrix(one))
    return sparse.hstack(parts[0], "csr"), sparse.hstack(parts[1], "csr")


def _one_hot(ids: Any, size: int) -> Any:
    from scipy import sparse

    return sparse.csr_matrix((np.ones(len(ids)), (np.arange(len(ids)), ids)), (len(ids), size))


def _scaled(train: Any, test: Any) -> tuple[Any, Any]:
    train, test = train.astype(float), test.astype(float)
    known = train[~np.isnan(train)]
    mean = known.mean() if len(known) else 0.0
    spread = known.std() if len(known) else 1.0
    first, second = (
        np.stack([np.nan_to_num((one - mean) / (spread or 1.0)), np.isnan(one)], 1) for one in (train, test)
    )
    return first, second


def _weights(train: Any, test: Any) -> tuple[Any, Any]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(
        max_features=_WORDS,
        ngram_range=(1, 2),
        sublinear_tf=True,
        decode_error="replace",
        token_pattern=r"(?u)\b\w+\b",
    )
    return words.fit_transform(list(train)), words.transform(list(test))
