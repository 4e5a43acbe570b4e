"""Boosted trees as a Keras model: the answers of scikit-learn, from TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from stoker.recipes import trees

_ROWS = 600


def _columns(seed: int) -> dict[str, Any]:
    """Numbers with gaps, two categories, and dates too large for float32."""
    random = np.random.default_rng(seed)
    length: Any = random.normal(size=_ROWS).astype(np.float32)
    length[random.random(_ROWS) < 0.1] = np.nan
    return {
        "length": length,
        "town": random.integers(1, 40, _ROWS, dtype=np.int32),
        "width": random.normal(size=_ROWS).astype(np.float32),
        "day": random.integers(1_600_000_000, 1_600_000_500, _ROWS),
        "kind": random.integers(1, 5, _ROWS, dtype=np.int32),
    }


def _target(rows: dict[str, Any]) -> Any:
    return (
        2 * np.nan_to_num(rows["length"])
        + np.isnan(rows["length"])
        + np.sin(rows["town"])
        + rows["kind"] * (rows["day"] % 500 > 250)
    )


def _matrix(rows: dict[str, Any]) -> Any:
    return np.stack(list(rows.values()), 1).astype(float)


@pytest.fixture(scope="module", params=[0, 2, 3])
def trained(request: pytest.FixtureRequest) -> tuple[Any, keras.Model, int]:
    """The model of scikit-learn, the Keras model, and how many classes there are."""
    rows = _columns(0)
    goal = _target(rows)
    options: dict[str, Any] = {
        "max_iter": 30,
        "categorical_features": [False, True, False, False, True],
        "random_state": 0,
    }
    if request.param:
        goal = np.digitize(goal, np.quantile(goal, np.linspace(0, 1, request.param + 1)[1:-1]))
        model: Any = HistGradientBoostingClassifier(**options).fit(_matrix(rows), goal)
    else:
        model = HistGradientBoostingRegressor(**options).fit(_matrix(rows), goal)
    inputs = {name: keras.Input((), name=name, dtype=str(column.dtype)) for name, column in rows.items()}
    columns = [
        trees.TreeColumn(name, size, tuple(np.unique(rows[name]).tolist()) if size else ())
        for name, size in (("length", 0), ("town", 45), ("width", 0), ("day", 0), ("kind", 6))
    ]
    return model, keras.Model(inputs, trees.boosted_margins(model, columns, inputs)), request.param


def _answers(model: keras.Model, rows: dict[str, Any], classes: int) -> Any:
    margins: Any = model(rows).numpy()
    if not classes:
        return margins[:, 0]
    if classes == 2:
        margins = np.concatenate([-margins / 2, margins / 2], 1)
    raised = np.exp(margins - margins.max(1, keepdims=True))
    return raised / raised.sum(1, keepdims=True)


def test_the_answers_are_those_of_scikit_learn(trained: tuple[Any, keras.Model, int]) -> None:
    model, converted, classes = trained
    rows = _columns(1)
    # Ids that no training row has: 0 stands for a missing value, and 44 for a town nobody has seen.
    rows["town"][:40] = 0
    rows["town"][40:80] = 44
    rows["width"][:100] = np.nan
    wanted = model.predict_proba(_matrix(rows)) if classes else model.predict(_matrix(rows))
    np.testing.assert_allclose(_answers(converted, rows, classes), wanted, rtol=0, atol=1e-12)


def test_a_saved_model_answers_the_same(trained: tuple[Any, keras.Model, int], tmp_path: Path) -> None:
    _, converted, _ = trained
    converted.save(tmp_path / "trees.keras")
    again = keras.models.load_model(tmp_path / "trees.keras", safe_mode=True)
    rows = _columns(2)
    np.testing.assert_array_equal(again(rows).numpy(), converted(rows).numpy())


def test_trees_that_ask_nothing_are_left_to_the_constant() -> None:
    rows = np.arange(60.0).reshape(-1, 1)
    assert not trees.can_convert(HistGradientBoostingRegressor(max_iter=2).fit(rows, np.ones(60)))
    assert trees.can_convert(HistGradientBoostingRegressor(max_iter=2).fit(rows, rows[:, 0]))
