"""The rivals of a network: each is exported as a model that answers as scikit-learn does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

import stoker
from stoker import clock
from stoker.recipes import rivals
from stoker.recipes.baselines import fit_quietly
from stoker.recipes.budget import Budget
from stoker.recipes.rival_answers import mix
from stoker.recipes.rows import Rows, rows_of
from stoker.tf_internals.types import Dataset


@pytest.fixture(scope="module", params=["numbers", "two classes", "three classes"])
def data(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Dataset, Rows, int]:
    """A table with a missing number, a category, a date and, called like a layer, a column `paths`."""
    random = np.random.default_rng(0)
    classes = {"numbers": 0, "two classes": 2, "three classes": 3}[request.param]
    lines = ["paths,town,day,goal"]
    for row in range(400):
        paths, town = random.normal(), random.choice(["Oslo", "Rome", "Lima"])
        goal: Any = 3 * paths + len(town) * (paths > 0) + random.normal() / 4
        if classes:
            goal = "abc"[min(classes - 1, int(goal > 0) + int(goal > 2))]
        lines.append(f"{'' if row % 9 == 0 else f'{paths:.4f}'},{town},2024-0{1 + row % 9}-11,{goal}")
    path = tmp_path_factory.mktemp("rivals") / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    mode = "int" if classes else "number"
    whole = stoker.data.csv(str(path), label="goal", batch_size=100, label_mode=mode)
    return whole, rows_of(whole), classes


def _answers(model: Any, rows: Rows, classes: int) -> Any:
    found = model(rows.inputs).numpy()
    return found if classes else found[:, 0]


def test_each_exported_rival_answers_as_the_original(data: tuple[Dataset, Rows, int]) -> None:
    whole, rows, classes = data
    found = {one.name: one for one in rivals.table_rivals(whole.features, rows, classes=classes)}
    assert set(found) == {"constant", "linear", "boosted trees"}
    assert found["constant"].build is None
    for name in ("linear", "boosted trees"):
        build = found[name].build
        assert build is not None
        # float32 at the end.
        np.testing.assert_allclose(
            _answers(build(), rows, classes), found[name].predict(rows), rtol=1e-5, atol=1e-6
        )


def test_a_mix_gives_the_weighted_mean(data: tuple[Dataset, Rows, int]) -> None:
    whole, rows, classes = data
    _, linear, boosted = rivals.table_rivals(whole.features, rows, classes=classes)
    assert linear.build is not None
    assert boosted.build is not None
    inputs = rivals.table_inputs(whole.features)
    mixed = mix([linear.build(), boosted.build()], [0.25, 0.75], inputs, classes)
    wanted = 0.25 * linear.predict(rows) + 0.75 * boosted.predict(rows)
    np.testing.assert_allclose(_answers(mixed, rows, classes), wanted, rtol=1e-5, atol=1e-6)


def test_a_class_that_no_training_row_has_keeps_a_rival_out_of_the_bundle(
    data: tuple[Dataset, Rows, int],
) -> None:
    whole, rows, classes = data
    if classes:
        found = rivals.table_rivals(whole.features, rows, classes=classes + 1)
        assert all(one.build is None for one in found)
        assert found[1].predict(rows).shape == (400, classes + 1)


@pytest.mark.parametrize("rows", [300, 11_000])
def test_trees_grown_step_by_step_are_the_same_and_end_with_the_time(rows: int) -> None:
    """With more than 10,000 rows, scikit-learn stops them early, by rows it holds out."""
    random = np.random.default_rng(1)
    inputs = random.normal(size=(rows, 3))
    labels = inputs[:, 0] * inputs[:, 1] + random.normal(size=rows) / 9
    whole = HistGradientBoostingRegressor(random_state=3)
    fit_quietly(whole, inputs, labels)
    grown = HistGradientBoostingRegressor(random_state=3, warm_start=True)
    rivals._grow_trees(grown, inputs, labels, Budget(1e6))
    assert np.array_equal(grown.predict(inputs), whole.predict(inputs))
    assert grown.n_iter_ == whole.n_iter_
    late = Budget(1.0, started_ns=clock.now_ns() - 60 * 10**9)
    short = HistGradientBoostingRegressor(random_state=3, warm_start=True)
    rivals._grow_trees(short, inputs, labels, late)
    assert short.n_iter_ == 12
    assert late.cuts == ["No time for all trees: boosted trees have 12 of at most 100 steps."]


def test_no_bit_of_the_trees_depends_on_the_number_of_threads() -> None:
    random = np.random.default_rng(2)
    inputs, labels = random.normal(size=(12_000, 4)), random.integers(0, 2, 12_000)
    answers = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="openmp"):
            model = HistGradientBoostingClassifier(random_state=0, max_iter=2).fit(inputs, labels)
            answers.append(model.predict_proba(inputs))
    assert np.array_equal(answers[0], answers[1])
