"""The model of scikit-learn that competes with a network for texts, and how it becomes a Keras model to export."""

from __future__ import annotations

import itertools
import re
from functools import partial
from typing import Any

import keras
import numpy as np
from keras import ops

from stoker.recipes.baselines import CONSTANT, TFIDF, Estimator, answer, fit_quietly, linear_model
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
from stoker.tf_internals.types import Dataset, Model, Tensor

# TF-IDF weights are small numbers, so weak penalties suit them.
_PENALTIES = (0.03, 0.1, 1.0)
# The most terms for which a server can hold a number for each text of a batch.
_TERMS = 20_000
# The characters that Keras' `TextVectorization` removes by its rule "lower_and_strip_punctuation".
_PUNCTUATION = re.compile(rb"[!\"#$%&()\*\+,-\./:;<=>?@\[\\\]^_`{|}~']")


def text_rivals(
    train: Rows,
    validation: Rows | None = None,
    *,
    classes: int,
    balanced: bool = False,
    seed: int = 0,
    budget: Budget | None = None,
) -> list[Rival]:
    """Train a constant, and a linear model of the weights of words and pairs of words (TF-IDF).

    Args:
        train: texts as bytes, and their classes.
        validation: rows on which to choose the penalty, and from which to learn in the end.
        classes: the number of classes.
        balanced: whether all classes count the same.
        seed: the seed of models that draw random numbers.
        budget: the available time.
    """
    task = RivalTask(classes, balanced, seed, budget or Budget())
    kinds = [
        RivalKind(CONSTANT, [partial(constant_rival, task)], power=0.0),
        RivalKind(TFIDF, [partial(_tfidf, task, penalty) for penalty in _PENALTIES]),
    ]
    return train_rivals(kinds, train, validation, task)


def _tfidf(task: RivalTask, penalty: float, train: Rows) -> Rival:
    words = _vectorizer()
    try:
        weights = words.fit_transform(train.inputs)
    except ValueError:
        # None of the texts has a word.
        return constant_rival(task, train, TFIDF)
    model = linear_model(task.classes, task.balanced, penalty)
    fit_quietly(model, weights, train.labels)
    build = None
    if knows_all_classes(model, task.classes):
        build = partial(_build, words, model, task.classes)
    return Rival(TFIDF, lambda rows: answer(model, words.transform(rows.inputs), task.classes), build)


def _vectorizer() -> Estimator:
    from sklearn.feature_extraction.text import TfidfVectorizer

    # The vectorizer decodes texts before splitting them; Latin-1 keeps every byte.
    return TfidfVectorizer(
        analyzer=lambda text: find_terms(text.encode("latin-1")),
        encoding="latin-1",
        max_features=_TERMS,
        sublinear_tf=True,
    )


def find_terms(text: bytes) -> list[str]:
    """Return the words of a text, and the pairs of neighbours, as Keras' `TextVectorization` finds them.

    Words that are not UTF-8 cannot be in a vocabulary.
    """
    words = _PUNCTUATION.sub(b"", text.lower()).split()
    terms = words + [b" ".join(pair) for pair in itertools.pairwise(words)]
    return [found for term in terms if (found := _decode(term)) is not None]


def _decode(term: bytes) -> str | None:
    try:
        return term.decode()
    except UnicodeDecodeError:
        return None


def _build(words: Any, model: Estimator, classes: int) -> Model:
    """Build a model of Keras' layers that gives the same answers for texts."""
    terms = [term for term, _ in sorted(words.vocabulary_.items(), key=lambda pair: pair[1])]
    text = text_input()
    # This layer counts unknown terms in its first column, which gets a weight of zero.
    counts = keras.layers.TextVectorization(
        ngrams=2,
        output_mode="count",
        vocabulary=terms,
        pad_to_max_tokens=False,
        name="terms",
    )(text)
    counts = ops.cast(counts, "float64")
    there = ops.greater(counts, 0.0)
    logs = ops.where(
        there, 1.0 + ops.log(ops.where(there, counts, ops.ones_like(counts))), ops.zeros_like(counts)
    )
    weigh = keras.layers.EinsumDense(
        "bt,t->bt", (len(terms) + 1,), dtype="float64", trainable=False, name="weights"
    )
    weighed = weigh(logs)
    weigh.set_weights([np.concatenate([[0.0], words.idf_])])
    units = keras.layers.UnitNormalization(dtype="float64", name="units")(weighed)
    coefficients = np.atleast_2d(model.coef_).T
    linear = keras.layers.Dense(coefficients.shape[1], dtype="float64", trainable=False, name="linear")
    margins = linear(units)
    linear.set_weights([np.vstack([np.zeros((1, coefficients.shape[1])), coefficients]), model.intercept_])
    return keras.Model(text, final_answer(margins, classes))


def take_texts(model: Model, train: Dataset) -> Model:
    """Turn a network over word ids into a model that takes texts, with the vocabulary of its dataset in front.

    Args:
        model: the network, which takes the ids of words.
        train: the dataset of `stoker.data.text` from which it learned.
    """
    text = text_input()
    ids: Tensor = train.vectorization(text)
    return keras.Model(text, model(ids if train.max_length is None else ids[:, : train.max_length]))


def text_input() -> Tensor:
    """Return the Keras input of a model that takes texts."""
    return keras.Input((), dtype="string", name="text")
