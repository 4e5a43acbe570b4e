"""Which rows count as changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker.serve.rollout.changes import IncomparableError, compare_answers, read_answers
from stoker.serve.signature import Field


def texts(*words: str | bytes) -> Any:
    return np.array(words, object)


def test_a_label_decides_and_without_one_every_output_does() -> None:
    scores, moved = np.array([[0.6, 0.4], [0.9, 0.1]]), np.array([[0.4, 0.6], [0.8, 0.2]])
    old, new = {"label": texts("a", "a"), "scores": scores}, {"label": texts(b"b", "a"), "scores": moved}
    found = compare_answers(old, new)
    assert found.changed.tolist() == [True, False]
    assert found.share == 0.5
    assert found.outputs["scores"].changed.tolist() == [True, True]
    distance = found.outputs["scores"].distance
    assert distance is not None
    np.testing.assert_allclose(distance, [0.2, 0.1])
    assert compare_answers({"scores": scores}, {"scores": moved}).share == 1.0


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ([100.0, 100.0], [100.9, 101.1], [False, True]),
        ([0.0, 0.0], [0.0, 1e-9], [False, True]),
        ([np.nan, np.nan, 1.0], [np.nan, 1.0, np.inf], [False, True, True]),
        ([np.inf, np.inf], [np.inf, -np.inf], [False, True]),
        ([1, 2], [1, 3], [False, True]),
        ([True, False], [True, True], [False, True]),
        ([[1000.0, 0.0]], [[1000.0, 9.0]], [False]),  # relative to the largest one of the row
        ([[], []], [[], []], [False, False]),
    ],
)  # fmt: skip
def test_numbers(old: Any, new: Any, changed: list[bool]) -> None:
    assert compare_answers({"y": np.array(old)}, {"y": np.array(new)}).changed.tolist() == changed


def test_what_cannot_be_compared_says_why() -> None:
    one = np.zeros((2, 3))
    for new, line in (
        ({}, "no output 'y' any more"),
        ({"y": np.zeros((2, 4))}, r"shape \[2, 4\] instead of \[2, 3\]"),
    ):
        with pytest.raises(IncomparableError, match=line):
            compare_answers({"y": one}, new)
    with pytest.raises(IncomparableError, match="no answers"):
        compare_answers({}, {"y": one})
    field = Field("y", "float32", (), "y")
    assert np.isnan(read_answers([field], {"y": [None]})["y"]).all()
    with pytest.raises(IncomparableError, match="'y' now has a different type"):
        read_answers([field], {"y": ["cat"]})
