"""Rows held out by group or by time: no group on two sides, nothing later than what is tested on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker.data.splits import By, divide
from stoker.errors import ArgumentError


def test_every_row_is_in_one_part_and_groups_stay_whole() -> None:
    groups = np.random.default_rng(0).integers(0, 40, 1000)
    parts = divide(1000, (0.2, 0.1), By("group", "customer", groups), seed=3)
    assert sorted(np.concatenate(parts).tolist()) == list(range(1000))
    sides = [set(groups[part].tolist()) for part in parts]
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]
    assert [len(part) for part in parts] == pytest.approx([700, 200, 100], abs=30)
    again = divide(1000, (0.2, 0.1), By("group", "customer", groups), seed=4)
    assert not np.array_equal(parts[1], again[1])


def test_a_group_that_is_most_of_the_rows_leaves_something_for_each_part() -> None:
    groups = np.array([7] * 96 + [1, 2, 3, 4])
    for seed in range(20):
        parts = divide(100, (0.15, 0.15), By("group", "g", groups), seed)
        assert all(len(part) for part in parts)


def test_one_row_cannot_be_split(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,b\n1,2\n")
    with pytest.raises(
        ArgumentError, match=r"validation_split=0.5 of 1 row leaves one of the two parts empty"
    ):
        stoker.data.csv(tmp_path / "one.csv", validation_split=0.5)
    with pytest.raises(ArgumentError, match=r"=\(0.2, 0.2\) of 1 row leaves a part empty"):
        divide(1, (0.2, 0.2), None, seed=0)


def test_the_latest_rows_are_held_out_and_no_time_is_on_two_sides() -> None:
    times = np.random.default_rng(0).integers(0, 90, 1000)
    train, validation, test = divide(1000, (0.15, 0.15), By("time", "day", times), seed=None)
    assert times[train].max() < times[validation].min()
    assert times[validation].max() < times[test].min()
    assert len(train) + len(validation) + len(test) == 1000


def test_any_whole_number_is_a_seed() -> None:
    for seed in (-1, -(2**63), 0, 2**64):
        parts = divide(100, (0.2, 0.1), None, seed)
        assert sorted(np.concatenate(parts)) == list(range(100))
        assert [len(part) for part in parts] == [70, 20, 10]


def test_without_a_seed_the_last_rows_are_held_out() -> None:
    train, second, third = divide(10, (0.2, 0.3), None, seed=None)
    assert (train.tolist(), second.tolist(), third.tolist()) == ([0, 1, 2, 3, 4], [5, 6], [7, 8, 9])


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (By("group", "town", np.zeros(50)), "it has 1 group, and 3 parts"),
        (By("time", "day", np.zeros(50)), "too few different times"),
    ],
)
def test_what_cannot_be_divided_is_said(by: By, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        divide(50, (0.2, 0.2), by, seed=0)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    lines = ["customer,day,amount,price"]
    lines += [f"c{row % 12},2024-{1 + row % 9:02}-{1 + row % 27:02},{row},{row * 2.5}" for row in range(240)]
    (tmp_path / "sales.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "sales.csv"


def _amounts(dataset: Any) -> list[int]:
    return [int(one) for inputs, _ in dataset for one in inputs["amount"]]


def _read(table: Path, **options: Any) -> Any:
    return stoker.data.csv(
        table, "price", batch_size=16, shuffle=True, validation_split=(0.2, 0.2), cache=False, **options
    )


@pytest.mark.tensorflow
def test_a_reader_keeps_groups_apart_in_every_epoch(table: Path) -> None:
    parts = _read(table, group="customer")
    assert len(parts) == 3
    assert "customer" not in parts[0].features
    assert set(parts[0].element_spec[0]) == {"day", "amount"}
    sides = [{row % 12 for row in _amounts(part)} for part in parts]
    assert sum(len(side) for side in sides) == 12
    first, second = _amounts(parts[0]), _amounts(parts[0])
    assert first != second
    assert sorted(first) == sorted(second)
    assert len(first) == parts[0].rows


@pytest.mark.tensorflow
def test_a_reader_holds_the_latest_out_and_takes_statistics_from_the_rest(table: Path) -> None:
    train, _, test = _read(table, time="day", columns=["amount", "customer"])
    days = {row: (1 + row % 9, 1 + row % 27) for row in range(240)}
    assert max(days[row] for row in _amounts(train)) < min(days[row] for row in _amounts(test))
    assert train.features.mean("amount") == pytest.approx(np.mean(_amounts(train)))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"group": "custmer"}, "did you mean 'customer'"),
        ({"group": "customer", "time": "day"}, "one of them"),
        ({"time": "customer"}, "should hold dates or numbers"),
        ({"group": "price"}, "it is the label"),
    ],
)
def test_a_divider_that_makes_no_sense(table: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        _read(table, **options)
    with pytest.raises(ArgumentError, match="validation_split"):
        stoker.data.csv(table, "price", group="customer", cache=False)
