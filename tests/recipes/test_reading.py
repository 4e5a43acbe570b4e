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
