"""What is written beside each row of a file that `stoker predict` answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from stoker.serve.bulk import answer_columns


@pytest.mark.parametrize(("classes", "columns"), [(2, 2), (20, 20), (21, 0)])
def test_each_class_has_a_column_of_scores_up_to_twenty_classes(classes: int, columns: int) -> None:
    labels = [f"class {number}" for number in range(classes)]
    # Only the labels of the bundle matter for the columns.
    predictor: Any = SimpleNamespace(bundle=SimpleNamespace(labels=labels))
    scores = np.arange(1.0, 2 * classes + 1).reshape(2, classes)
    found = answer_columns(predictor, {"label": np.array(labels[-1:] * 2), "scores": scores})
    assert list(found) == ["prediction", "score", *(f"scores.{label}" for label in labels[:columns])]
    assert found["prediction"] == [labels[-1]] * 2
    assert found["score"] == [classes, 2 * classes]
    if columns:
        assert found["scores.class 0"] == [1, classes + 1]
