"""Tables as strangers make them: each function writes one file, with the target in a column of its own."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROWS = 120


@dataclass(frozen=True)
class Messy:
    """A file: what it holds, the column to predict, and how to read it with Python's `csv`."""

    content: bytes
    target: str
    sep: str = ","
    encoding: str = "utf-8"
    # Lines above the header, which `csv` must skip.
    above: int = 0


Maker = Callable[[np.random.Generator], Messy]
MAKERS: dict[str, Maker] = {}


def maker(make: Maker) -> Maker:
    """Register a file under the name of its function."""
    MAKERS[make.__name__] = make
    return make


def _text(rows: Iterable[Iterable[object]], sep: str = ",", end: str = "\n") -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=sep, lineterminator=end).writerows(rows)
    return buffer.getvalue()


def _homes(random: np.random.Generator, count: int = ROWS) -> list[list[object]]:
    """Size, rooms, town and price of homes."""
    towns = ["Köln", "Rom", "Oslo"]
    found: list[list[object]] = []
    for _ in range(count):
        size, town = round(float(random.uniform(20, 200)), 1), int(random.integers(3))
        found.append([size, int(random.integers(1, 7)), towns[town], round(size * 1000 + town * 20_000, 2)])
    return found


@maker
def rough_sizes_and_prices_in_thousands(random: np.random.Generator) -> Messy:
    rows = [
        [
            (f"{a} m2", f"ca. {a} m²", f"{a} m²")[number % 3],
            b,
            c,
            (f"{d / 1000:.1f}k", f"{d:.0f}", f"{d:.0f}.-", f"€{d / 1e6:.3f}M")[number % 4],
        ]
        for number, (a, b, c, d) in enumerate((a, b, c, float(str(d))) for a, b, c, d in _homes(random))
    ]
    return Messy(_text([["size", "rooms", "town", "price"], *rows]).encode(), "price")


@maker
def semicolons_and_decimal_commas(random: np.random.Generator) -> Messy:
    rows = [[f"{a}".replace(".", ","), b, c, f"{d:.2f}".replace(".", ",")] for a, b, c, d in _homes(random)]
    return Messy(_text([["size", "rooms", "town", "price"], *rows], ";").encode(), "price", ";")


@maker
def byte_order_mark(random: np.random.Generator) -> Messy:
    return Messy(_text([["size", "rooms", "town", "price"], *_homes(random)]).encode("utf-8-sig"), "price")


@maker
def latin_1(random: np.random.Generator) -> Messy:
    text = _text([["größe", "rooms", "town", "price"], *_homes(random)])
    return Messy(text.encode("latin-1"), "price", encoding="latin-1")


@maker
def utf_16_from_a_spreadsheet(random: np.random.Generator) -> Messy:
    text = _text([["size", "rooms", "town", "price"], *_homes(random)], "\t", "\r\n")
    return Messy(text.encode("utf-16"), "price", "\t", "utf-16")


@maker
def quoted_numbers_with_thousands(random: np.random.Generator) -> Messy:
    rows = [[a, b, c, f"{d:,.2f}"] for a, b, c, d in _homes(random)]
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([["size", "rooms", "town", "price"], *rows])
    return Messy(buffer.getvalue().encode(), "price")


@maker
def totals_at_the_end(random: np.random.Generator) -> Messy:
    rows = _homes(random)
    rows.append(["Total", "", "", sum(float(str(row[3])) for row in rows)])
    return Messy(_text([["size", "rooms", "town", "price"], *rows]).encode(), "price")


@maker
def the_header_again_and_again(random: np.random.Generator) -> Messy:
    head: list[object] = ["size", "rooms", "town", "price"]
    rows = _homes(random)
    return Messy(_text([head, *rows[:40], head, *rows[40:80], head, *rows[80:]]).encode(), "price")


@maker
def two_columns_of_one_name(random: np.random.Generator) -> Messy:
    rows = [[a, b, b, c, d] for a, b, c, d in _homes(random)]
    return Messy(_text([["size", "rooms", "rooms", "town", "price"], *rows]).encode(), "price")


@maker
def trailing_commas(random: np.random.Generator) -> Messy:
    rows = [[*row, ""] for row in _homes(random)]
    return Messy(_text([["size", "rooms", "town", "price"], *rows]).encode(), "price")


@maker
def empty_and_constant_columns(random: np.random.Generator) -> Messy:
    rows = [["", a, b, "EU", c, d, ""] for a, b, c, d in _homes(random)]
    return Messy(_text([["old", "size", "rooms", "area", "town", "price", ""], *rows]).encode(), "price")


@maker
def words_among_numbers(random: np.random.Generator) -> Messy:
    rows = _homes(random)
    for number, word in ((4, "N/A"), (17, "-"), (30, "about 70"), (55, "n.a."), (90, "")):
        rows[number][0] = word
    rows[8][3], rows[9][3] = "", "on request"
    return Messy(_text([["size", "rooms", "town", "price"], *rows]).encode(), "price")


@maker
def percents_and_currencies(random: np.random.Generator) -> Messy:
    rows = [
        [f"{a}%", f"€ {b}", c, f"${d:,.2f}" if float(str(d)) > 60_000 else f"(${d:,.2f})"]
        for a, b, c, d in _homes(random)
    ]
    return Messy(_text([["share", "fee", "town", "price"], *rows]).encode(), "price")


@maker
def dates_in_three_forms(random: np.random.Generator) -> Messy:
    rows = []
    for number, (a, _, c, d) in enumerate(_homes(random)):
        year, month, day = 2020 + number % 5, 1 + number % 12, 1 + number % 28
        written = (f"{year}-{month:02}-{day:02}", f"{day:02}/{month:02}/{year}", f"{day}. March {year}")[
            number % 3
        ]
        rows.append([written, a, c, d])
    return Messy(_text([["sold", "size", "town", "price"], *rows]).encode(), "price")


@maker
def serial_dates_of_a_spreadsheet(random: np.random.Generator) -> Messy:
    rows = []
    for number, (a, b, c, d) in enumerate(_homes(random)):
        rows.append([45_000 + number if number % 4 else f"2023-0{1 + number % 9}-11", a, b, c, d])
    return Messy(_text([["sold", "size", "rooms", "town", "price"], *rows]).encode(), "price")


@maker
def units_in_the_cells(random: np.random.Generator) -> Messy:
    rows = [[f"{a} m2", f"{b} rooms", c, f"{d:.0f} EUR"] for a, b, c, d in _homes(random)]
    rows[5][0] = "62.7m2"
    return Messy(_text([["size", "rooms", "town", "price"], *rows]).encode(), "price")


@maker
def emoji_and_long_texts(random: np.random.Generator) -> Messy:
    words = ["nice", "quiet", "🏠", "garden", "view", "old", "naïve", "東京", "with", "a"]
    rows = []
    for number, (a, _, c, d) in enumerate(_homes(random)):
        text = " ".join(random.choice(words, 2000 if number == 3 else 12))
        rows.append([text, a, f"{c} 🚀", d])
    return Messy(_text([["about 💬", "size", "town", "price"], *rows]).encode(), "price")


@maker
def a_class_with_a_typo(random: np.random.Generator) -> Messy:
    rows = [[a, b, c, "dear" if float(str(d)) > 110_000 else "cheap"] for a, b, c, d in _homes(random)]
    rows[7][3], rows[8][3] = "chaep", " "
    return Messy(_text([["size", "rooms", "town", "class"], *rows]).encode(), "class")


@maker
def ragged_rows(random: np.random.Generator) -> Messy:
    lines = _text([["size", "rooms", "town", "price"], *_homes(random)]).splitlines()
    lines[10] += ",extra,cells"
    lines[20] = lines[20].rpartition(",")[0].rpartition(",")[0]
    lines[30] = "see the other sheet"
    return Messy(("\n".join(lines) + "\n").encode(), "price")


@maker
def lines_above_the_header(random: np.random.Generator) -> Messy:
    text = _text([["size", "rooms", "town", "price"], *_homes(random)])
    return Messy(f"Homes of 2026\n\n{text}".encode(), "price", above=2)


@maker
def a_report_above_the_header(random: np.random.Generator) -> Messy:
    text = _text([["size", "rooms", "town", "price"], *_homes(random)])
    return Messy(f"Homes, 2026\nmade by, me\n\n{text}".encode(), "price", above=3)


@maker
def a_separator_line(random: np.random.Generator) -> Messy:
    rows = [[f"{a}".replace(".", ","), b, c, f"{d:.2f}".replace(".", ",")] for a, b, c, d in _homes(random)]
    text = _text([["size", "rooms", "town", "price"], *rows], ";", "\r\n")
    return Messy(f"sep=;\r\n{text}".encode(), "price", ";", above=1)


@maker
def ids_and_names(random: np.random.Generator) -> Messy:
    rows = []
    for number, (a, b, c, d) in enumerate(_homes(random)):
        unique = "".join(random.choice(list("0123456789abcdef"), 32))
        rows.append(
            [f"C{number:05}", unique, 10**17 + 7919 * number, f"owner{number}@example.org", a, b, c, d]
        )
    head = ["customer", "uuid", "serial", "mail", "size", "rooms", "town", "price"]
    return Messy(_text([head, *rows]).encode(), "price")


@maker
def spaces_around_everything(random: np.random.Generator) -> Messy:
    rows = [[f" {a} ", f" {b}", f"{c} ", f" {d} "] for a, b, c, d in _homes(random)]
    return Messy(_text([[" size", "rooms ", " town ", " price "], *rows], ",", "\r\n").encode(), "price")


@maker
def a_database_dump(random: np.random.Generator) -> Messy:
    rows = [[a, "\\N" if n % 9 == 4 else b, c, d] for n, (a, b, c, d) in enumerate(_homes(random))]
    table: list[list[object]] = [["size", "rooms", "town", "price"], *rows]
    lines = ["\t".join(map(str, row)) for row in table]
    return Messy(("\n".join(lines) + "\n").encode(), "price", "\t")


@maker
def an_accountants_ledger(random: np.random.Generator) -> Messy:
    rows = []
    for _ in range(ROWS):
        income, costs = random.uniform(1_000, 90_000, 2)
        profit = f"{abs(income - costs):,.2f}"
        rows.append([f"{income:,.2f}", f"({costs:,.2f})", f"({profit})" if income < costs else profit])
    return Messy(_text([["income", "costs", "profit"], *rows]).encode(), "profit")


@maker
def errors_and_infinities_of_a_spreadsheet(random: np.random.Generator) -> Messy:
    rows = [
        [
            f"{a:.1f}",
            "#DIV/0!" if n % 30 == 7 else b,
            "inf" if n % 10 == 3 else "-inf" if n == 5 else n % 4,
            c,
            d,
        ]
        for n, (a, b, c, d) in enumerate(_homes(random))
    ]
    text = "sep=;\r\n" + _text([["size", "rooms", "ratio", "town", "price"], *rows], ";", "\r\n")
    return Messy(text.encode(), "price", ";", above=1)


@maker
def lines_and_quotes_in_the_cells(random: np.random.Generator) -> Messy:
    rows = [[f'"Sunny", he said,\r\nnear the station no. {n}', *row] for n, row in enumerate(_homes(random))]
    return Messy(_text([["note", "size", "rooms", "town", "price"], *rows], ",", "\r\n").encode(), "price")


@maker
def times_of_the_day_and_durations(random: np.random.Generator) -> Messy:
    rows = []
    for n, (a, b, c, d) in enumerate(_homes(random)):
        hours, minutes = int(random.integers(24)), int(random.integers(60))
        clock = f"{hours % 12 or 12}:{minutes:02} {'PM' if hours >= 12 else 'AM'}"
        took = f"{hours}:{minutes:02}:07" if n % 3 else f"{hours}h {minutes}m"
        rows.append([clock, took, a, b, c, d])
    head = ["clock", "took", "size", "rooms", "town", "price"]
    return Messy(_text([head, *rows]).encode(), "price")


@maker
def hard_names(random: np.random.Generator) -> Messy:
    rows = [[n, a, b, c, str(c)[:1], d] for n, (a, b, c, d) in enumerate(_homes(random))]
    head = ["", "größe (m²)", '"rooms" #', "Town/City", "town/city", "price [€], net"]
    return Messy(_text([head, *rows]).encode(), "price [€], net")


@maker
def old_line_ends_and_remarks(random: np.random.Generator) -> Messy:
    lines = _text([["size", "rooms", "town", "price"], *_homes(random)]).splitlines()
    lines[40:40] = ["# page 2", ""]
    return Messy("\r".join(["# written by a tool", *lines, ""]).encode(), "price", above=1)


def write(name: str, directory: Path, seed: int = 0) -> tuple[Path, Messy]:
    """Write the file of a maker."""
    made = MAKERS[name](np.random.default_rng(seed))
    path = directory / f"{name}.csv"
    path.write_bytes(made.content)
    return path, made


def rows_of(path: Path, made: Messy) -> list[dict[str, object]]:
    """The rows as Python reads them: all texts, ragged rows with odd keys."""
    with path.open(newline="", encoding=made.encoding) as stream:
        for _ in range(made.above):
            next(stream)
        return [dict(row) for row in csv.DictReader(stream, delimiter=made.sep)]
