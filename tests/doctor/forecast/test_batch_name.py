"""The batch named by an option of the program, or by a name at the top of its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.doctor.forecast.batch_name import change_arguments, change_source, place_from_name
from stoker.errors import UsageError


@pytest.mark.parametrize(
    ("given", "rows", "changed"),
    [
        (["--batch", "64", "-v"], 64, ["--batch", "4", "-v"]),
        (["--batch=64"], 64, ["--batch=4"]),
        (["-v"], None, ["-v", "--batch", "4"]),
    ],
)
def test_an_option_is_found_and_changed(given: list[str], rows: int | None, changed: list[str]) -> None:
    place = place_from_name("--batch", "train.py", given)
    assert place.rows == rows
    assert change_arguments(place, 4, given) == changed


def test_a_name_is_found_and_changed(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("SIDE: int = 8\nBATCH = 64\nrows = BATCH * 2\n")
    place = place_from_name("BATCH", str(file), [])
    assert (place.rows, place.line) == (64, 2)
    names: dict[str, object] = {}
    exec(compile(change_source(place, 4, str(file)), str(file), "exec"), names)
    assert (names["SIDE"], names["rows"]) == (8, 8)


def test_a_name_that_is_not_there_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("BATCH = 64\n")
    with pytest.raises(UsageError, match="sets no SIZE at top level"):
        place_from_name("SIZE", str(file), [])
