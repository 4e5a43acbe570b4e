"""The source kept around findings."""

from __future__ import annotations

from pathlib import Path

from stoker.doctor.diagnosis.excerpts import excerpts
from tests.samples import sample_finding


def numbered(directory: Path, count: int) -> dict[str, str]:
    path = directory / "train.py"
    path.write_text("".join(f"line {n}\n" for n in range(1, count + 1)), encoding="utf-8")
    return {"train.py": str(path)}


def test_lines_that_touch_are_one_excerpt(tmp_path: Path) -> None:
    found = excerpts([sample_finding(line=n) for n in (60, 20, 25)], numbered(tmp_path, 100))
    assert [(e.first, len(e.lines)) for e in found] == [(14, 18), (54, 13)]
    assert found[0].lines[6] == "line 20"


def test_the_ends_of_a_file_and_lines_beyond_it(tmp_path: Path) -> None:
    found = excerpts([sample_finding(line=n) for n in (2, 10, 500)], numbered(tmp_path, 10))
    assert [(e.first, len(e.lines)) for e in found] == [(1, 10)]


def test_a_file_that_is_gone_has_no_excerpt() -> None:
    assert excerpts([sample_finding(file="gone.py")], {}) == []


def test_very_long_lines_and_very_many_findings_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "wide.py"
    path.write_text("x" * 10_000 + "\n" * 40_000, encoding="utf-8")
    found = excerpts([sample_finding(line=n) for n in range(1, 40_000, 40)], {"train.py": str(path)})
    assert len(found) == 200
    assert len(found[0].lines[0]) == 300
