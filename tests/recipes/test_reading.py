"""How a table was read, in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stoker
from stoker.data.survey import survey
from stoker.recipes.data_checks import report_odd_classes
from stoker.recipes.reading import describe_reading


def test_values_of_a_part_of_the_rows_are_called_so(tmp_path: Path) -> None:
    """The terminal counts over all rows and the report over those for training: the figures differ."""
    path = tmp_path / "x.csv"
    path.write_text("kind,y\n" + "".join(f"{'abc'[n % 3]},{n}\n" for n in range(30)), encoding="utf-8")
    whole = stoker.data.csv(path, "y", 10, lenient=True, cache=False)
    for of, read in (
        ("", "category, 3 values"),
        ("training rows", "category, 3 values in the training rows"),
    ):
        assert describe_reading(whole.features, whole.rows, "y", [], of)["columns"][0]["read"] == read


def test_empty_cells_of_a_category_are_missing_and_no_value(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    cells = ["Lift", '""', "", " N/A", "Garage"]
    path.write_text("remark,y\n" + "".join(f"{cells[n % 5]},{n}\n" for n in range(30)), encoding="utf-8")
    whole = stoker.data.csv(path, "y", 10, lenient=True, cache=False)
    (column, _) = describe_reading(whole.features, whole.rows, "y", [])["columns"]
    assert (column["read"], column["note"]) == ("category, 2 values", "18 missing")
    (remark, _) = survey(str(path))["columns"]
    assert (remark["different"], remark["missing"]) == (2, 18)
    assert remark["top"] == [["Garage", 6], ["Lift", 6]]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (
            ["N", "No", "Y", "yes"],
            "stoker: classes 'N' and 'No', 'Y' and 'yes' look like the same class: spell them alike if they are one\n",
        ),
        (["male", "F", "female"], "stoker: classes 'F' and 'female' look like the same class: "),
        (["A", "B", "C", "absent"], ""),
        (["N", "no", "north"], ""),
        (["1", "2", "y"], ""),
    ],
)
def test_initials_of_other_classes_are_told(
    names: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    report_odd_classes(np.repeat(np.arange(len(names)), 20), names)
    told = capsys.readouterr().out
    assert told.startswith(said)
    assert bool(told) == bool(said)


def test_missing_values_are_those_of_all_rows(tmp_path: Path) -> None:
    """They are counted while the file is read, so the report may not call them those of the training rows."""
    path = tmp_path / "x.csv"
    cells = (("" if n % 3 else str(n), n) for n in range(30))
    path.write_text("size,y\n" + "".join(f"{size},{n}\n" for size, n in cells), encoding="utf-8")
    whole = stoker.data.csv(path, "y", 10, lenient=True, cache=False)
    told = describe_reading(whole.features, whole.rows, "y", [], "training rows")
    assert told["columns"][0]["note"] == "20 missing in all rows"
