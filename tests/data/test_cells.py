"""Cells as people write them: numbers with units and signs, dates in many forms, words for nothing."""

from __future__ import annotations

import datetime

import pytest

from stoker.data.cell_dates import read_date
from stoker.data.cell_guesses import guess_reading
from stoker.data.cells import BadCellError, CellReading


@pytest.mark.parametrize(
    ("reading", "text", "value"),
    [
        (CellReading("number"), " 3.5 ", 3.5),
        (CellReading("number"), "-1e-3", -0.001),
        (CellReading("number", affix="m2"), "62.7 m2", 62.7),
        (CellReading("number", affix="m²"), "62.7m²", 62.7),
        (CellReading("number", affix="km/h"), "80 km/h", 80),
        (CellReading("number", affix="%"), "12.5 %", 12.5),
        (CellReading("number", affix="°c"), "\u22123 °C", -3),
        (CellReading("number", thousands=",", affix="$"), "-$1,234.50", -1234.5),
        (CellReading("number", thousands=",", affix="$"), "($1,234.50)", -1234.5),
        (CellReading("number", decimal=",", thousands="."), "1.234,5", 1234.5),
        (CellReading("number", decimal=",", thousands=" "), "1\u202f234,5", 1234.5),
        (CellReading("number", affix="eur"), "EUR 12", 12),
        (CellReading("number", affix="eur"), "12 €", 12),
        (CellReading("number", affix="$"), "USD 12", 12),
        (CellReading("number", affix="m²"), "12 qm", 12),
        (CellReading("number", affix="m2"), "ca. 46 m²", 46),
        (CellReading("number"), "~12", 12),
        (CellReading("number", thousands="'", affix="chf"), "CHF 1'250.-", 1250),
        (CellReading("number", affix="fr"), "Fr. 12.\u2013", 12),
        (CellReading("number", affix="€", scaled=True), "€110.5M", 110_500_000),
        (CellReading("number", affix="chf", scaled=True), "1.2 Mio. CHF", 1_200_000),
        (CellReading("number", scaled=True), "305k", 305_000),
        (CellReading("number", affix="k"), "305k", 305),
        (CellReading("number", affix="km"), "5km", 5),
        (CellReading("whole"), "12345678901234567", 12345678901234567),
        (CellReading("truth"), "Yes", 1.0),
        (CellReading("truth"), "false", 0.0),
        (CellReading("number", gaps=("void",)), "void", None),
        *((CellReading("number"), text, None) for text in ("", "  ", "N/A", "-", "?", "#DIV/0!", "nan")),
        *(
            (CellReading("number"), text, "bad")
            for text in ("0x1F", "old", "A12", "3-5", "12:30", "1,2", "5 kg")
        ),
        (CellReading("number", thousands=","), "12,34", "bad"),
        (CellReading("truth"), "maybe", "bad"),
        (CellReading("date", unit="D"), "soon", "bad"),
    ],
)
def test_cells_are_read(reading: CellReading, text: str, value: float | str | None) -> None:
    if value != "bad":
        assert reading.read(text) == value
        return
    with pytest.raises(BadCellError):
        reading.read(text)


@pytest.mark.parametrize(
    "text",
    [
        *("2026-03-05", "2026/3/5", "5.3.2026", "05/03/2026", "05-Mar-2026", "5 March 2026", "March 5, 2026"),
        *("Thu, 5 Mar 2026", "5th Mar 2026", "20260305", "46086", "5. März 2026", "05/03/26"),
    ],
)
def test_dates_are_read(text: str) -> None:
    day = (datetime.date(2026, 3, 5) - datetime.date(1970, 1, 1)).days
    assert read_date(text, "D", day_first=True) == day


def test_times_are_read_in_utc() -> None:
    noon = int(datetime.datetime(2026, 3, 5, 12, 30, tzinfo=datetime.timezone.utc).timestamp())
    for text in ("2026-03-05 12:30", "2026-03-05T12:30:00Z", "05/03/2026 12:30 PM", "2026-03-05 13:30+01:00"):
        assert read_date(text, "s", day_first=True) == noon
    assert read_date("2026-03-05T12:30:00.25", "ms", day_first=True) == noon * 1000 + 250
    # Only one of both is possible.
    assert read_date("03/25/2026", "D", day_first=True) == read_date("25/03/2026", "D", day_first=False)


@pytest.mark.parametrize(
    "text", ["2026-13-01", "30/02/2026", "1.2.3", "10.0.0.1", "25:00", "2026", "May", "13/13/2026"]
)
def test_other_texts_are_no_dates(text: str) -> None:
    assert read_date(text, "s", day_first=True) is None


@pytest.mark.parametrize(
    ("texts", "how"),
    [
        (["1,234.5", "12", "1,000"], "number, ',' between thousands"),
        (["1.234,5", "12", "0,5"], "number, '.' between thousands, decimal comma"),
        (["12,5", "0,512"], "number, decimal comma"),
        (["1'000", "2'500'000"], "number, an apostrophe between thousands"),
        (["3 kg", "4 kg", "5"], "number, 'kg' taken off"),
        (["46.5 m2", "47 m²", "ca. 46 m2"], "number, 'm2' taken off"),
        (["305000", "CHF 305'000.-", "12.-"], "number, 'CHF' taken off, an apostrophe between thousands"),
        (["€565K", "€110.5M", "€0"], "number, '€' taken off, 'k' times 1,000, 'm' times 1,000,000"),
        (["5k", "800", "1.2k"], "number, 'k' times 1,000"),
        (["5k", "12k"], "number, 'k' taken off"),
        (["300 K", "301K", "302"], "number, 'K' taken off"),
        (["-3 °C", "4.5°C", "7 °c"], "number, '°C' taken off"),
        (["47 m²", "48 m²", "46 m2", "45 qm", "44 sqm"], "number, 'm²' taken off"),
        (["5 EUR", "6 EUR", "7 €", "€8", "9"], "number, 'EUR' taken off"),
        (["$5", "USD 6", "7 $"], "number, '$' taken off"),
        (["13/04/2026", "02/04/2026"], "date, day/month/year"),
        (["04/13/2026", "04/02/2026"], "date, month/day/year"),
        (["04/03/2026", "05/02/2026"], "date, day/month/year (it could be month/day/year)"),
        (["2026-01-02", "45000"], "date"),
        (
            ["13/04/2026", "2026-01-02", "3 Mar 2026"],
            "date, day/month/year; others, such as '2026-01-02', were read too",
        ),
        (
            ["1 kg", "2 kg", "3 kg", "4000 g"],
            "its numbers have different units: 30 in kg, 10 in g",
        ),
        (
            ["5 EUR", "€6", "7 CHF", "8 CHF", "9", "unknown price"],
            "its numbers have different units: 20 in EUR, 20 in CHF, 10 without one",
        ),
        (["12", "12a", "12b", "3c"], "50 % of its cells are numbers, others are not, such as '12b'"),
        (["red", "green"], None),
        (["A12", "B7"], None),
        (["12 Main St", "7 Elm Rd"], None),
        (["3rd", "4th", "1st"], None),
        (["45000", "45001"], "number"),
        (["", "-"], None),
    ],
)
def test_how_cells_are_written_is_guessed(texts: list[str], how: str | None) -> None:
    found = guess_reading(dict.fromkeys(texts, 10))
    assert (found and found.how) == how


def test_the_most_frequent_misfits_are_named() -> None:
    prices = {f"{n} EUR": 1 for n in range(60)} | {f"{n} CHF": 1 for n in range(40)} | {"unbekannt": 3}
    found = guess_reading(prices)
    assert found
    assert found.reading is None
    assert found.how == "its numbers have different units: 60 in EUR, 40 in CHF"
    mixed = {str(n): 1 for n in range(60)} | {"5 kg": 1, "on request": 30, "sold": 3}
    found = guess_reading(mixed)
    assert found
    assert found.how == "65 % of its cells are numbers, others are not, such as 'on request'"
