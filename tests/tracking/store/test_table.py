"""Conditions, as they are typed and as they come in links."""

from __future__ import annotations

import pytest

from stoker.errors import UsageError
from stoker.tracking.store.table import nest_rows, select_rows

ROWS = [
    {"id": "a", "name": "base line", "metrics.loss": 0.1},
    {"id": "b", "name": "other", "metrics.loss": 2.0},
]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("loss < 1", "a"), ("loss<1", "a"), ("  loss  >=  2  ", "b"), ("name ~ BASE", "a"), ("name = 'base line'", "a"),
        ("name != other", "a"), ("loss=2", "b"), ("metrics.loss<=0.1", "a"), ("name~ ", "ab"), ("missing != 3", "ab"),
        ("name = a=b", ""), ("loss < x", ""),
    ],
)  # fmt: skip
def test_a_condition_selects(condition: str, found: str) -> None:
    assert "".join(row["id"] for row in select_rows(ROWS, [condition], "id", None)) == found


def test_a_name_that_no_run_has_is_one_line() -> None:
    with pytest.raises(UsageError, match="no run has 'los': did you mean 'loss'"):
        select_rows(ROWS, ["los < 1"], "id", None)
    assert select_rows([], ["los < 1"], "id", None) == []
    with pytest.raises(UsageError, match="no run has 'aaa") as caught:
        select_rows(ROWS, [f"{'a' * 500_000} < 1"], "id", None)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("condition", ["", "loss", "< 3", " = ", "loss ! 3", "!loss", "=" * 10])
def test_what_is_no_condition_is_one_line(condition: str) -> None:
    with pytest.raises(UsageError, match="cannot read the condition"):
        select_rows(ROWS, [condition], "id", None)


@pytest.mark.parametrize("part", [" ", "a ", " '", "a"])
def test_a_long_condition_is_read_once(part: str) -> None:
    """Going back and forth over these, a pattern would take longer than there is time: 2,000 spaces took a minute."""
    assert select_rows(ROWS, [f"name={part * 500_000}b"], "id", None) == []
    for condition in (part * 500_000, f"a{part * 500_000}"):
        with pytest.raises(UsageError, match="cannot read the condition") as caught:
            select_rows(ROWS, [condition], "id", None)
        assert len(str(caught.value)) < 1000


def test_runs_stand_behind_the_run_around_them() -> None:
    newest_first = [
        ("export", "recipe", 6), ("other", None, 5), ("second", "recipe", 4), ("deep", "first", 3),
        ("first", "recipe", 2), ("recipe", "gone", 1), ("x", "y", 0), ("y", "x", 0), ("own", "own", 0),
    ]  # fmt: skip
    rows = [{"id": name, "parent": parent, "started": at} for name, parent, at in newest_first]
    assert [(depth, row["id"]) for depth, row in nest_rows(rows)] == [
        (0, "other"), (0, "recipe"), (1, "first"), (2, "deep"), (1, "second"), (1, "export"),
        (0, "own"), (0, "x"), (0, "y"),
    ]  # fmt: skip
