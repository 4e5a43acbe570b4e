"""TF-IDF with a linear model as Keras layers: the same answers as scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.recipes.rows import Rows
from stoker.recipes.tfidf import find_terms, text_rivals
from stoker.recipes.winner import predict

pytestmark = pytest.mark.tensorflow
_WORDS = ["boat", "Sea,", "sail!", "tax", "bank", "don't", "\u00c9t\u00e9", "x_y", "a-b", "harbour"]


def _texts(count: int, classes: int) -> Rows:
    random = np.random.default_rng(0)
    labels = random.integers(0, classes, count)
    texts = [
        " ".join(random.choice(_WORDS[label * 2 : label * 2 + 6], random.integers(1, 30))).encode()
        for label in labels
    ]
    texts[:3] = [b"", b"\xff\xfe sea sea \xff", b"  tabs\tand\nlines\x0bhere  "]
    return Rows(np.array(texts, object), labels)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_exported_rival_answers_as_the_original(classes: int) -> None:
    rows = _texts(300, classes)
    constant, tfidf = text_rivals(rows, rows.sample(40), classes=classes)
    assert constant.build is None
    assert tfidf.build is not None
    assert tfidf.validation is not None
    assert tfidf.validation.shape == (40, classes)
    given = predict(tfidf.build(), rows.inputs, classes)
    np.testing.assert_allclose(given, tfidf.predict(rows), rtol=1e-5, atol=1e-6)


def test_terms_are_words_and_pairs_without_what_is_not_text() -> None:
    assert find_terms(b"The sea, the Sea! \xff end") == [
        *("the", "sea", "the", "sea", "end"),
        *("the sea", "sea the", "the sea"),
    ]


def test_texts_of_one_class_or_without_words_leave_nothing_to_export() -> None:
    for rows in (
        Rows(np.array([b"one", b"two"] * 10, object), np.zeros(20, int)),
        Rows(np.array([b"", b"!"] * 10, object), np.arange(20) % 2),
    ):
        assert all(one.build is None for one in text_rivals(rows, classes=2))
