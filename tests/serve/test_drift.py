"""What is asked against what training had: what has drifted is told, and what has not is not."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker.serve.drift import Drift
from stoker.serve.signature import Field

FIELDS = (
    Field("age", "float32", (), "age", "number"),
    Field("pixels", "uint8", (2, 2), "pixels"),
    Field("city", "string", (), "city", "category"),
    Field("note", "string", (), "note", "text"),
)
KNOWN: dict[str, Any] = {
    "age": {"rows": 1000, "mean": 40.0, "deviation": 10.0, "missing": 0.1},
    "pixels": {"rows": 1000, "mean": 100.0, "deviation": 50.0, "missing": 0.0},
    "city": {"words": ["Rome", "Oslo"]},
}


def rows(
    count: int, age: float = 40.0, spread: float = 10.0, missing: float = 0.1, new: float = 0.0
) -> list[Any]:
    random = np.random.default_rng(count)
    ages = random.normal(age, spread, count).astype("float32")
    ages[random.random(count) < missing] = np.nan
    cities = np.where(random.random(count) < new, "Paris", "Rome").astype(object)
    return [ages, random.normal(100, 50, (count, 2, 2)).clip(0, 255).astype("uint8"), cities, cities]


def sure(given: list[Any]) -> dict[tuple[str, str], str]:
    drift = Drift(FIELDS, KNOWN)
    drift.add(given)
    return {(one.input, one.of): one.line for one in drift.shifts() if one.sure}


def test_rows_like_those_of_training_are_no_drift() -> None:
    for count in (1, 30, 60, 500, 30_000):
        assert sure(rows(count)) == {}


def test_each_way_to_drift_is_told_in_words() -> None:
    found = sure(rows(400, age=55))
    assert list(found) == [("age", "mean")]
    assert found["age", "mean"].startswith("'age' has drifted: the mean is 5")
    assert found["age", "mean"].endswith("in training 40 (spread 10); over 400 sampled rows")
    assert list(sure(rows(400, spread=40))) == [("age", "spread")]
    assert list(sure(rows(400, missing=0.5))) == [("age", "missing")]
    assert sure(rows(400, new=0.3)).keys() == {("city", "unseen")}
    assert "such as 'Paris'" in sure(rows(400, new=0.3))["city", "unseen"]


def test_a_few_rows_are_not_enough_to_tell() -> None:
    assert sure(rows(40, age=80)) == {}


def test_it_is_about_now() -> None:
    drift = Drift(FIELDS, KNOWN)
    for _ in range(20):
        drift.add(rows(1000))
    for _ in range(60):
        drift.add(rows(1000, age=60))
    (mean,) = [one for one in drift.shifts() if (one.input, one.of) == ("age", "mean")]
    assert 1.9 < mean.amount < 2.1
    assert mean.sure


def test_bytes_and_texts_of_categories_are_the_same() -> None:
    drift = Drift(FIELDS[2:3], KNOWN)
    drift.add([np.array([b"Rome", "Oslo", "[UNK]", ""], object)])
    assert drift.shifts()[0].amount == 0


def test_nothing_known_is_nothing_told() -> None:
    drift = Drift(FIELDS, {})
    drift.add(rows(3))
    assert not drift
    assert drift.shifts() == []
