"""Totals and notes of a CSV file are no data, and rows that only resemble them are."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import stoker
from stoker.data.cells import CellReading
from stoker.serve.row_files import RowFileOptions, read_chunks
from stoker.serve.signature import Field

pytestmark = pytest.mark.tensorflow

HOMES = ["id,city,area,rent", *(f"A{n},{('Bern', 'Rom')[n % 2]},{20 + n}.5,{900 + n}.25" for n in range(60))]
NAMES = ["name,town,age,y", *(f"{('Ann Lee', 'Bo')[n % 2]},Bern,{20 + n},{n}" for n in range(60))]
DAYS = ["day,rain,wind,y", *(f"2026-{1 + n // 28:02}-{1 + n % 28:02},{n}.5,{n % 7},{n}" for n in range(60))]
SHOPS = ["shop,town,kind,y", *(f"{('Total', 'Migros')[n % 2]},Bern,b,{n}" for n in range(60))]
REVIEWS = [
    "review,stars,day,y",
    *(f"{' '.join(f'w{i},'[: 1 + (n * i) % 3] for i in range(3 + n))!r},3,2026-01-02,{n}" for n in range(60)),
]
REVIEWS = [line.replace("'", '"') for line in REVIEWS]
NUMBERS = ["a,b,c,d", *(f"{n},{n % 7},{n % 5}.5,{n}" for n in range(60))]
MEASURES = ["measure,region,unit,y", *(f"{('count', 'mean', 'rate')[n % 3]},Bern,kg,{n}" for n in range(60))]
# The rows below the header, the rows put after some of them, and how many rows are left out.
MARKED: dict[str, tuple[list[str], dict[int, str], int]] = {
    "a total": (HOMES, {60: "Total,,,5000"}, 1),
    "a note in German": (HOMES, {60: "Summe,,,5000\nQuelle: eigene Erhebung,,,"}, 2),
    "a note in English": (HOMES, {60: "Total,,,5000\nAs of 31.12.2025,,,"}, 2),
    "a footnote": (HOMES, {60: "Total,,,5000\n* estimated,,,"}, 2),
    "notes and gaps": (HOMES, {60: ",,,\nTotal,,,5000\n,,,\nPrepared by J. Smith,,,\n1) with heating,,,"}, 5),
    "ten notes": (HOMES, {60: "Total,,,5000\n" + "\n".join(f"{n}) as reported,,," for n in range(10))}, 11),
    "a note that looks like a city": (HOMES, {60: "Total,,,5000\n,preliminary,,"}, 1),
    "a note under numbers": (NUMBERS, {60: "preliminary,,,"}, 1),
    "subtotals": (HOMES, {20: "Subtotal,,,62535.10", 40: "Subtotal,,,7", 60: "Subtotal,,,8\nTotal,,,9"}, 4),
    "subtotals with a name": (HOMES, {20: "Zwischensumme Bern,,,5", 40: "Zwischensumme Rom,,50,5"}, 2),
    "sums of a year": (HOMES, {20: "Summe 2024,,,5", 40: "= Summe 2025:,,,5"}, 2),
    "a total with dashes": (HOMES, {30: "TOTAL,-,-,5"}, 1),
    "totals among numbers": (NUMBERS, {20: "Total,5,6,7", 40: "sous-total,5,6,7"}, 2),
    "a total in the second column": (HOMES, {30: ",Grand Total,50,5"}, 1),
    "a group's total": (MEASURES, {30: "Total Bern,,,5"}, 1),
}
DATA: dict[str, tuple[list[str], str]] = {
    "an id alone": (HOMES, "A60,,,\nA61,,,"),
    "a city alone": (HOMES, ",Oslo,,"),
    "an area alone": (HOMES, ",,20.5,"),
    "a name alone": (NAMES, "Cy,,,"),
    "a name of two words alone": (NAMES, "Cy Fox,,,"),
    "days to come": (DAYS, "2026-05-01,,,\n2026-05-02,,,"),
    "a review alone": (REVIEWS, '"Lovely, and cheap!",,,'),
    "a shop called Total": (SHOPS, "Total,,,5\nTotal,Bern,,5"),
    "a shop whose name begins like a total": (
        HOMES,
        "Total Wine,Rom,7.5,5\nSum of us,,7.5,5\nSumma GmbH,Rom,,5",
    ),
    "measures": (MEASURES, "count,,,5\nmean,,,5"),
    "full rows": (HOMES, "Total,Bern,5.5,5\nSubtotal,Rom,5.5,5"),
    "totals with a word": (HOMES, "Totally,,,5\nSummer,,,5"),
}


def read(path: Path, label: str) -> Any:
    return stoker.data.csv(path, label, 1000, lenient=True, cache=False)


def count_answered(path: Path) -> int:
    """How many rows `stoker predict` and `stoker evaluate` would answer."""
    fields = [Field(name, "float32", (), name, "number", reading=CellReading("number")) for name in "xz"]
    return sum(len(chunk.places) for chunk in read_chunks(str(path), fields, RowFileOptions()))


def write(path: Path, rows: list[str], between: dict[int, str], sep: str = ",") -> Path:
    """Write a header and rows; further lines follow the rows with these numbers."""
    lines = [line for n, row in enumerate(rows) for line in (row, *([between[n]] if n in between else []))]
    path.write_text("\n".join(lines).replace(",", sep) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("sep", [",", ";"])
@pytest.mark.parametrize("name", MARKED)
def test_marked_rows_are_left_out(name: str, sep: str, tmp_path: Path) -> None:
    rows, between, gone = MARKED[name]
    path = write(tmp_path / "t.csv", rows, between, sep)
    whole = read(path, rows[0].rpartition(",")[2])
    notes = [line for line in whole.features.found["notes"] if "left out" in line]
    assert sum(int(line.partition(" ")[0]) for line in notes) == gone
    assert whole.rows + whole.features.found["unlabelled"] == len(rows) + _lines(between) - gone - 1
    assert count_answered(path) == whole.rows + whole.features.found["unlabelled"]


def _lines(between: dict[int, str]) -> int:
    return sum(1 + text.count("\n") for text in between.values())


@pytest.mark.parametrize("place", [30, 60])
@pytest.mark.parametrize("name", DATA)
def test_rows_that_resemble_totals_and_notes_are_data(name: str, place: int, tmp_path: Path) -> None:
    rows, more = DATA[name]
    # At the end, a known word before an empty cell has always meant a total.
    if place == 60 and name in ("a shop called Total", "measures", "totals with a word"):
        place = 59
    path = write(tmp_path / "t.csv", rows, {place: more})
    whole = read(path, "y" if rows is not HOMES else "rent")
    assert not any("left out" in line for line in whole.features.found["notes"])
    assert whole.rows + whole.features.found["unlabelled"] == 61 + more.count("\n")
    assert count_answered(path) == 61 + more.count("\n")


def test_a_sparse_table_keeps_its_rows(tmp_path: Path) -> None:
    rows = [
        "a,b,c,d",
        *(",".join("x y" if n % 4 == i else "" for i in range(4)) for n in range(60)),
        ",,z 1 z,",
    ]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(rows))
    assert count_answered(path) == 61


def test_the_way_totals_are_left_out_is_said(tmp_path: Path) -> None:
    between = {20: "Subtotal,,,7", 40: "Subtotal,,,7", 60: "Total,,,9\nQuelle: Amt,,,"}
    notes = read(write(tmp_path / "t.csv", HOMES, between), "rent").features.found["notes"]
    assert notes == [
        "2 rows left out: a total among the rows (rows 21, 42)",
        "2 rows left out: a total or a note at the end (rows 63, 64)",
    ]


@pytest.mark.parametrize("where", ["in the middle", "in a second file", "in a packed file"])
def test_totals_are_found_wherever_they_stand(where: str, tmp_path: Path) -> None:
    long = [HOMES[0], *HOMES[1:] * 2_000]
    folder = tmp_path / "d"
    folder.mkdir()
    if where == "in the middle":
        write(folder / "a.csv", long, {80_000: "Subtotal,,,1e9"})
    else:
        write(folder / "a.csv", HOMES, {})
        write(folder / "b.csv", HOMES, {60: "Total,,,1e9\nAs of today,,,"})
    if where == "in a packed file":
        for path in list(folder.iterdir()):
            (folder / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    whole = read(folder, "rent")
    assert whole.rows == (120_000 if where == "in the middle" else 120)
    assert max(labels.max() for _, labels in whole.as_numpy_iterator()) < 1000
