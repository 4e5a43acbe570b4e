"""Messy tables are read, what cannot be read is counted, and every row of the file can be answered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError
from stoker.serve.export.intake import table_fields
from stoker.serve.rows import as_rows
from tests.data import messy_files


def read(path: Path, label: str, **options: Any) -> Any:
    return stoker.data.csv(path, label, 1000, lenient=True, cache=False, **options)


def lines(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def find_name(path: Path, name: str) -> str:
    """The column as the file has it, with spaces around it."""
    from stoker.data.csv_files import CsvFiles

    return next(one.name for one in CsvFiles([path], lenient=True).columns() if one.name.strip() == name)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(messy_files.MAKERS))
def test_every_messy_file_is_read_and_each_of_its_rows_answered(name: str, tmp_path: Path) -> None:
    path, made = messy_files.write(name, tmp_path)
    whole = read(path, find_name(path, made.target))
    assert whole.rows >= messy_files.ROWS - 4
    if made.target == "price":
        # The target is the number that was written, whatever stands around it.
        labels = next(whole.as_numpy_iterator())[1]
        assert labels.dtype.kind == "f"
        assert 15_000 < np.abs(labels).min() <= np.abs(labels).max() < 250_000
    fields = table_fields(whole.features, list(whole.features.values()))
    rows: Any = messy_files.rows_of(path, made)
    sent = json.loads(json.dumps(rows))
    together = as_rows(fields, sent)
    assert together.count == len(rows) >= messy_files.ROWS
    for one in sent:
        assert as_rows(fields, [one]).count == 1


_WITHOUT_SOME_ROWS = (
    *("ragged_rows", "the_header_again_and_again", "totals_at_the_end", "words_among_numbers"),
    "old_line_ends_and_remarks",
)


def kinds(whole: Any) -> dict[str, str]:
    return {name: feature.kind for name, feature in whole.features.items()}


def test_cells_are_read_alike_in_training_and_in_serving(tmp_path: Path) -> None:
    for name in messy_files.MAKERS:
        if name in _WITHOUT_SOME_ROWS:
            continue
        path, made = messy_files.write(name, tmp_path)
        whole = read(path, find_name(path, made.target), shuffle=False)
        inputs = next(whole.as_numpy_iterator())[0]
        rows = messy_files.rows_of(path, made)
        if made.target == "class":
            rows = [row for row in rows if str(row["class"]).strip()]
        served = as_rows(table_fields(whole.features, list(whole.features.values())), rows)
        for feature, array in zip(whole.features.values(), served.arrays, strict=True):
            if feature.kind not in ("category", "text"):
                np.testing.assert_array_equal(inputs[feature.name], array, f"{name}: {feature.name}")


def test_units_currencies_and_thousands_are_taken_off(tmp_path: Path) -> None:
    whole = read(messy_files.write("percents_and_currencies", tmp_path)[0], "price")
    assert kinds(whole) == {"share": "number", "fee": "number", "town": "category"}
    assert whole.features.found["how"] == {
        "share": "number, '%' taken off",
        "fee": "number, '€' taken off",
        "price": "number, '$' taken off, ',' between thousands",
    }
    labels = next(whole.as_numpy_iterator())[1]
    assert (labels < 0).any()


def test_five_percent_of_other_dates_do_not_make_a_category(tmp_path: Path) -> None:
    days = [
        f"2026-{1 + n % 12:02}-{1 + n % 28:02}" if n % 20 else f"{13 + n % 9}/07/2026" for n in range(400)
    ]
    path = lines(tmp_path / "d.csv", "day,y", *(f"{day},{n}.5" for n, day in enumerate(days)))
    whole = read(path, "y")
    assert kinds(whole) == {"day": "date"}
    assert whole.features["day"].missing == 0
    first = next(whole.as_numpy_iterator())[0]["day"]
    assert first[0] == (np.datetime64("2026-07-13") - np.datetime64("1970-01-01")).astype(int)


def test_unreadable_cells_are_counted_and_the_first_three_shown(tmp_path: Path) -> None:
    cells = [f"{n}.5" for n in range(200)]
    for row in (3, 50, 51, 120):
        cells[row] = f"odd {row}"
    whole = read(lines(tmp_path / "x.csv", "x,y", *(f"{cell},{n}" for n, cell in enumerate(cells))), "y")
    assert kinds(whole) == {"x": "number"}
    assert whole.features.found["bad"] == {"x": 4}
    assert whole.features.found["shown"]["x"] == [[4, "odd 3"], [51, "odd 50"], [52, "odd 51"]]
    assert whole.features["x"].missing == 4
    with pytest.raises(ArgumentError, match="row 4: 'odd 3' in column x is not a number"):
        stoker.data.csv(tmp_path / "x.csv", "y", cache=False)


@pytest.mark.slow
def test_a_column_that_turns_to_words_later_is_a_category(tmp_path: Path) -> None:
    cells = [str(n) for n in range(200_000)] + [f"w{n % 9}" for n in range(150_000)]
    whole = read(lines(tmp_path / "x.csv", "x,y", *(f"{cell},{n}" for n, cell in enumerate(cells))), "y")
    assert kinds(whole)["x"] in ("category", "text")
    assert "57 % of its cells are numbers, others are not, such as 'w0'" in whole.features.found["how"]["x"]


@pytest.mark.slow
def test_a_unit_that_comes_late_is_still_taken_off(tmp_path: Path) -> None:
    cells = [f"{n}.25" for n in range(200_000)] + [f"{n} kg" for n in range(9)]
    whole = read(lines(tmp_path / "x.csv", "x,y", *(f"{cell},{n}" for n, cell in enumerate(cells))), "y")
    assert kinds(whole) == {"x": "number"}
    assert (whole.features["x"].missing, whole.features.found["bad"]) == (0, {})


def test_rows_without_a_label_are_left_out(tmp_path: Path) -> None:
    rows = [f"{n}.5,{'' if n in (2, 9) else ('a', 'b')[n % 2]}" for n in range(40)]
    whole = read(lines(tmp_path / "x.csv", "x,y", *rows), "y")
    assert (whole.rows, whole.features.found["unlabelled"]) == (38, 2)
    assert whole.class_names == ["a", "b"]
    with pytest.raises(ArgumentError, match="has no labels: every cell of column 'y' is empty"):
        read(lines(tmp_path / "y.csv", "x,y", "1,", "2,"), "y")
    with pytest.raises(ArgumentError, match="a closing quote is probably missing"):
        read(lines(tmp_path / "z.csv", "x,z,y", '1,"a,b', *(f"{n},a,3" for n in range(9))), "y")


def test_uneven_rows_are_counted_and_strictly_named(tmp_path: Path) -> None:
    path, _ = messy_files.write("ragged_rows", tmp_path)
    assert read(path, "price").features.found["notes"] == [
        "1 row left out: more fields than the 4 of the header (row 10)",
        "1 row left out: a single field (row 30)",
        "1 row had fewer fields than the header: the rest count as missing",
    ]
    with pytest.raises(ArgumentError, match="csv, row 10: a row has 6 fields where the header has 4: "):
        stoker.data.csv(path, "price", cache=False)


def test_a_category_has_one_word_however_it_is_written(tmp_path: Path) -> None:
    towns = ["Bern", " Bern", "bern", "BERN ", "Basel", "Basel ", "m", "M", "A1", "a1"]
    rows = [f"{town},{n},{('Yes', 'yes', 'No', 'no ')[n % 4]}" for n, town in enumerate(towns * 10)]
    path = lines(tmp_path / "x.csv", "town,n,sold", *rows)
    whole = read(path, "sold")
    town = whole.features["town"]
    assert sorted((town.vocabulary or ())[1:]) == ["A1", "Basel", "Bern", "M", "a1", "m"]
    assert whole.class_names == ["No", "Yes"]
    assert whole.features.found["merged"]["town"] == [["bern", "Bern"], ["BERN", "Bern"]]
    assert whole.features.found["trimmed"]["town"] == 30
    # Sent as they stand in the file, the words are those that the model has learned.
    fields = table_fields(whole.features, [town])
    sent = as_rows(fields, [{"town": one} for one in towns]).arrays[0].tolist()
    assert sent == ["Bern"] * 4 + ["Basel"] * 2 + ["m", "M", "A1", "a1"]
    plain: Any = stoker.data.csv(path, "sold", cache=False)
    assert len(plain.class_names) == 4


def test_an_empty_cell_of_a_category_is_missing_however_it_is_written(tmp_path: Path) -> None:
    cells = ["Lift", "Garage", '""', "", " N/A", "n/a", "-"]
    rows = [f"{cell},{n},{('none', 'some')[n % 2]}" for n, cell in enumerate(cells * 10)]
    whole = read(lines(tmp_path / "x.csv", "remark,n,kind", *rows), "kind")
    remark = whole.features["remark"]
    assert sorted((remark.vocabulary or ())[1:]) == ["", "Garage", "Lift"]
    assert whole.features.found["blank"] == {"remark": 50}
    assert whole.features.found["trimmed"] == {}
    # A class may have any name.
    assert whole.class_names == ["none", "some"]
    fields = table_fields(whole.features, [remark])
    sent = as_rows(fields, [{"remark": one} for one in ("Lift ", " N/A", "-", "")]).arrays[0].tolist()
    assert sent == ["Lift", "", "", ""]


def test_kinds_may_be_given(tmp_path: Path) -> None:
    path = lines(tmp_path / "x.csv", "day,code,y", *(f"{45_000 + n},{n % 7},{n}.5" for n in range(50)))
    whole = read(path, "y", types={"day": "date", "code": "category"})
    assert kinds(whole) == {"day": "date", "code": "category"}
    first = next(whole.as_numpy_iterator())[0]["day"][0]
    assert first == (np.datetime64("2023-03-15") - np.datetime64("1970-01-01")).astype(int)
    with pytest.raises(ArgumentError, match="types: column 'word' is not a date: it has cells such as 'w0'"):
        read(
            lines(tmp_path / "z.csv", "word,y", *(f"w{n % 3},{n}" for n in range(9))),
            "y",
            types={"word": "date"},
        )


def test_what_was_found_is_kept_in_the_cache(tmp_path: Path) -> None:
    path, _ = messy_files.write("words_among_numbers", tmp_path)
    first, again = (stoker.data.csv(path, "price", lenient=True, cache=tmp_path / "cache") for _ in range(2))
    assert first.features.found == again.features.found
    assert again.features.found["bad"] == {"size": 1, "price": 1}
    assert again.features.found["unlabelled"] == 2
    assert stoker.data.csv(path, columns=["rooms"], cache=tmp_path / "cache").features.found == {}


def test_texts_of_other_formats_are_read_too(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"size": [f"{n} m2" for n in range(50)], "y": [float(n) for n in range(50)]}),
        tmp_path / "a.parquet",
    )
    whole = stoker.data.parquet(tmp_path / "a.parquet", "y", lenient=True, cache=False)
    assert kinds(whole) == {"size": "number"}
    (tmp_path / "a.jsonl").write_text("".join(f'{{"size": "{n} m2", "y": {n}}}\n' for n in range(50)))
    assert kinds(stoker.data.jsonl(tmp_path / "a.jsonl", "y", lenient=True, cache=False)) == {
        "size": "number"
    }


@pytest.mark.parametrize("title", ["Sales 2025,,,,", "Sales,2025,,,", "Sales 2025,,,,\n,,,,", "Sales 2025"])
@pytest.mark.parametrize("header", ["id,city,area,rent,", ",city,area,rent,x", "id,,area,rent,"])
def test_columns_without_a_name_do_not_hide_the_header(title: str, header: str, tmp_path: Path) -> None:
    rows = [f"A{n},{('Bern', 'Rom')[n % 2]},{n}.5,{n}," for n in range(60)]
    names = [name for name in dict.fromkeys(header.split(",")) if name != "rent"]
    for text in (title, title.replace(",", ";")):
        sep = ";" if ";" in text else ","
        path = lines(tmp_path / "x.csv", text, *(row.replace(",", sep) for row in (header, *rows)))
        whole = read(path, "rent")
        assert (whole.rows, sorted(whole.features)) == (60, sorted(names))


def test_a_table_whose_first_rows_are_nearly_empty_keeps_them(tmp_path: Path) -> None:
    # No title: the columns have no names but one.
    rows = [f"A{n},{n % 3},{n}.5,{n % 7 or ''}" for n in range(60)]
    assert read(lines(tmp_path / "x.csv", "id,,,y", *rows), "y").rows == 60 - 9


def test_json_with_numbers_and_texts_in_a_column_is_read_as_text(tmp_path: Path) -> None:
    when = [45_000 + n if n % 3 else f"2023-03-{1 + n % 28:02}" for n in range(60)]
    sizes: list[Any] = [n + 0.5 if n % 2 else f"{n} m2" for n in range(60)]
    path = tmp_path / "a.jsonl"
    path.write_text(
        "".join(
            json.dumps({"when": a, "size": b, "tag": n % 2 or "x", "y": n}) + "\n"
            for n, (a, b) in enumerate(zip(when, sizes, strict=True))
        )
    )
    whole: Any = stoker.data.jsonl(path, "y", lenient=True, cache=False)
    assert kinds(whole) == {"when": "date", "size": "number", "tag": "category"}
    assert whole.rows == 60
    assert whole.features["size"].missing == 0
    some: Any = stoker.data.jsonl(path, "y", columns=["size"], lenient=True, cache=False)
    assert kinds(some) == {"size": "number"}
    with pytest.raises(ArgumentError, match="or read it as text with lenient=True"):
        stoker.data.jsonl(path, "y", cache=False)


@pytest.mark.slow
def test_a_text_late_in_a_json_column_of_numbers_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with path.open("w") as file:
        for n in range(400_000):
            size: Any = f"{n % 9} kg" if n > 399_990 else n % 9
            file.write(json.dumps({"size": size, "about": "a row among very many rows", "y": n}) + "\n")
    whole: Any = stoker.data.jsonl(path, "y", lenient=True, cache=False)
    assert (whole.rows, kinds(whole)["size"]) == (400_000, "number")
    assert whole.features["size"].missing == 0
