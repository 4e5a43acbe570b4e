"""Cells of a table as its file has them: texts for numbers, missing keys, columns that are no inputs."""

from __future__ import annotations

import dataclasses
import datetime
import re
from typing import Any

import numpy as np
import pytest

from stoker.data.cells import CellReading
from stoker.serve.rows import RowError, as_rows
from stoker.serve.signature import Field, Signature

AGE = Field("age", "float32", (), "age", "number", reading=CellReading("number", fill=40.0))
ROOMS = Field("rooms", "int64", (), "rooms", "whole", reading=CellReading("whole", fill=2.6))
SIZE = Field("size", "float32", (), "size", "number", reading=CellReading("number", affix="m2"))
SOLD = Field("sold", "float32", (), "sold", "truth", reading=CellReading("truth", fill=0.25))
DAY = Field("day", "int64", (), "day", "date", "days", reading=CellReading("date", unit="D", fill=7.0))
CITY = Field("city", "string", (), "city", "category", reading=CellReading("category", gaps=("?",)))
ALL = (AGE, ROOMS, SIZE, SOLD, DAY, CITY)


def read(fields: Any, rows: Any) -> list[Any]:
    return [one.tolist() for one in as_rows(fields, rows).arrays]


def test_a_row_of_texts_is_read() -> None:
    row = {"age": "3.5", "rooms": "4", "size": "62.5 m2", "sold": "true", "day": "1970-01-11", "city": "Rome"}
    wanted = [[3.5], [4], [62.5], [1.0], [10], ["Rome"]]
    assert read(ALL, [row]) == wanted
    assert read(ALL, row) == wanted
    assert read(ALL, {name: [value] for name, value in row.items()}) == wanted
    assert as_rows(ALL, row).alone


@pytest.mark.parametrize("gap", [None, "", "NA", "-", float("nan")])
def test_missing_cells_and_keys_are_answered(gap: Any) -> None:
    full = dict.fromkeys(("age", "rooms", "size", "sold", "day"), gap) | {"city": "?"}
    for rows in ([full], [{"city": None}], {"city": ["?"]}):
        age, rooms, size, sold, day, city = read(ALL, rows)
        # The mean of the training rows, where the model never met a missing one.
        assert (age, rooms, sold, day, city) == ([40.0], [3], [0.25], [7], ["[UNK]"])
        assert np.isnan(size).all()


def test_other_columns_are_left_out_and_names_may_differ_in_spaces_and_case() -> None:
    row: Any = {"\ufeffAGE ": "1", "id": "17", "price": "12", None: ["rest"], "rooms": 2}
    assert read((AGE, ROOMS), [row]) == [[1.0], [2]]
    assert read((AGE, ROOMS), row) == [[1.0], [2]]


def test_a_key_of_its_own_is_another_column() -> None:
    rows: Any = [{"age": 1, "id": 1, "price": 2, "x": 3, "country": "I"}, {"size": 1, "sise": 2}]
    assert len(read(ALL, rows)) == len(ALL)
    assert read([AGE], [{"age": None, "aeg": 3}]) == [[40.0]]


def test_words_are_read_however_they_are_written() -> None:
    tidy = CellReading("category", trimmed=True, words=("Rome", "Oslo"), gaps=("?",))
    city = dataclasses.replace(CITY, reading=tidy)
    given = [" Rome", "rome", b"ROME ", "rOmE", "Paris ", "?", None]
    assert read([city], {"city": given})[0] == ["Rome", "Rome", "Rome", "rOmE", "Paris", "[UNK]", "[UNK]"]
    # A bundle from before says nothing of spaces.
    assert read([CITY], {"city": given[:3]})[0] == [" Rome", "rome", b"ROME "]
    assert CellReading.from_json(tidy.to_json()) == tidy
    with pytest.raises(TypeError, match="words of a category"):
        CellReading.from_json({"kind": "category", "words": [3]})


def test_frames_of_texts_are_read() -> None:
    frames = pytest.importorskip("pandas")
    frame = frames.DataFrame({"price": ["1"], "day": ["1970-01-11"], "age": [None]})
    assert read((AGE, DAY, CITY), frame) == [[40.0], [10], ["[UNK]"]]


def test_dates_of_python_are_read_beside_texts() -> None:
    given = ["1970-01-11", datetime.date(1970, 1, 12), np.datetime64("1970-01-13"), 13, None]
    assert read([DAY], {"day": given}) == [[10, 11, 12, 13, 7]]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([{"age": "old"}], "'age': expected float32, got 'old'"),
        ([{"rooms": "2.5"}], "'rooms': expected int64, got 2.5"),
        ([{"rooms": str(2**70)}], f"'rooms': expected int64, got {2**70}"),
        ([{"age": [1]}], "'age': the input takes one value per row, got a list of 1"),
        ([{"day": "soon"}], "'day': expected int64, got 'soon'"),
        (
            [{"age": 1, "city_": "Rome"}],
            r"row 1: unknown input 'city_' \(did you mean 'city'\?\); for a missing",
        ),
        ([{"city": 1}, {"city": 1, "aeg": 2}], r"row 2: unknown input 'aeg' \(did you mean 'age'\?\)"),
        ([{"age": 1, "sise": 2}], r"'sise' \(did you mean 'size'\?\)"),
        ({"age": [1], "C.I.T.Y": ["a"]}, r"the row: unknown input 'C.I.T.Y' \(did you mean 'city'\?\)"),
        (
            [{"age": 1, "sold?": 1, "roms": 2, "id": 3}],
            r"unknown inputs 'sold\?' \(did you mean 'sold'\?\), 'roms' \(did you mean 'rooms'\?\); .* \"sold\": null",
        ),
        ([{"citi": "Rome"}], r"'citi' \(did you mean 'city'\?\)"),
        ([{"price": 1}], "row 1 has none of the columns age, rooms, size, sold, day, city"),
        ({"price": 1}, "the row has none of the columns age, rooms"),
        ([{"age": 1}, 7], "row 2 must be a dict"),
    ],
)
def test_what_cannot_be_read_is_one_line(rows: Any, line: str) -> None:
    with pytest.raises(RowError, match=line):
        as_rows(ALL, rows)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("Flaeche", "Fläche (m²)"), ("Flache", "Fläche (m²)"), ("Flaeche (m2)", "Fläche (m²)"),
        ("flaeche_m2", "Fläche (m²)"), ("Fläche", "Flaeche (m2)"),
        ("Fla\u0308che", "Fläche (m²)"), ("Groesse", "Größe"), ("Grosse", "Größe"),
        ("Uebung", "Übung"), ("annee", "année"), ("Bredde", "Brédde"), ("Hojde", "Højde"),
        ("Hoejde", "Højde"), ("Aar", "År"),
    ],
)  # fmt: skip
def test_an_umlaut_written_in_ascii_is_a_misspelling(key: str, name: str) -> None:
    field = dataclasses.replace(AGE, name=name)
    hint = re.escape(f"unknown input {key!r} (did you mean {name!r}?)")
    for rows in ([{"city": "Rome", key: 72.0}], {"city": ["Rome"], key: [72.0]}):
        with pytest.raises(RowError, match=hint):
            as_rows((field, CITY), rows)


def test_names_that_look_alike_are_the_same() -> None:
    for key, name in (("Fla\u0308che", "Fläche"), ("Fläche", "Fla\u0308che"), ("STRASSE", "Straße")):
        assert read((dataclasses.replace(AGE, name=name),), [{key: 2}]) == [[2.0]]


def test_a_column_with_unreadable_cells_in_training_takes_them_as_missing() -> None:
    tolerant = dataclasses.replace(AGE, reading=CellReading("number", tolerant=True, fill=40.0))
    assert read([tolerant], [{"age": "old"}, {"age": "3"}]) == [[40.0, 3.0]]


def test_the_reading_is_kept_in_the_description() -> None:
    signature = Signature(ALL, (Field("y", "float32", (1,), "y"),))
    kept = signature.to_json()
    assert "reading" not in kept["outputs"][0]
    assert kept["inputs"][2]["reading"] == {"kind": "number", "affix": "m2"}
    assert Signature.from_json(kept) == signature
    kept["inputs"][0]["reading"] = {"kind": "number", "gaps": [3]}
    with pytest.raises(TypeError, match="missing are not strings"):
        Signature.from_json(kept)
