"""How a table was read, in words."""

from __future__ import annotations

from pathlib import Path

import stoker
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


def test_missing_values_are_those_of_all_rows(tmp_path: Path) -> None:
    """They are counted while the file is read, so the report may not call them those of the training rows."""
    path = tmp_path / "x.csv"
    cells = (("" if n % 3 else str(n), n) for n in range(30))
    path.write_text("size,y\n" + "".join(f"{size},{n}\n" for size, n in cells), encoding="utf-8")
    whole = stoker.data.csv(path, "y", 10, lenient=True, cache=False)
    told = describe_reading(whole.features, whole.rows, "y", [], "training rows")
    assert told["columns"][0]["note"] == "20 missing in all rows"
