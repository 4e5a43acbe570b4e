"""Guess from a column's texts how its cells are written: units, currencies, thousands signs, forms of dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from stoker.data.cell_dates import day_order, has_time, is_two_numbers, read_date
from stoker.data.cell_times import read_time
from stoker.data.cells import TIME, USUAL_GAPS, CellReading, WrittenNumber, number_form, split_number

# The share of a column's cells that must agree, and the share from which the column deserves a note if they do not.
ENOUGH, _MANY = 0.9, 0.5
# How many different texts are tried first; most columns of words are recognised by then.
_FIRST = 200
# Decimal and thousands signs. Of those that fit equally well, the first is taken.
_SIGNS = ((".", ""), (".", ","), (",", ""), (",", "."), (".", " "), (",", " "), (".", "'"), (",", "'"))
_NAMES = {",": "','", ".": "'.'", " ": "a space", "'": "an apostrophe"}
_COMMA_SIGNS = ((",", ""), (",", "."), (",", " "), (",", "'"), *_SIGNS)


@dataclass(frozen=True)
class Guess:
    """The guess about a column.

    Attributes:
        reading: how its cells are read; None if it stays text.
        how: the reading in words; or why the column stays text although many cells are numbers or dates.
    """

    reading: CellReading | None
    how: str


def guess_reading(
    counts: Mapping[str, int],
    gaps: Collection[str] = (),
    *,
    asked: str | None = None,
    decimal_comma: bool = False,
) -> Guess | None:
    """Guess how a column's cells are written; None if they are words.

    Args:
        counts: how many times each text occurs.
        gaps: texts that stand for a missing value, in addition to the usual ones.
        asked: the kind that the caller gave, which is then not guessed.
        decimal_comma: whether numbers in other columns of this file have a decimal comma.
    """
    filled = {
        text: count
        for text, count in counts.items()
        if text not in gaps and text.strip().lower() not in USUAL_GAPS
    }
    total = sum(filled.values())
    if not filled or asked in ("category", "text"):
        return None
    if asked is None and not _is_promising(list(filled)[:_FIRST]):
        return None
    dates = None if asked in ("number", "whole") else _as_dates(filled, asked == "date")
    numbers = None if asked == "date" else _as_numbers(filled, decimal_comma)
    if asked == "truth":
        return Guess(CellReading("truth"), "true or false")
    times = None if asked == "date" else _as_times(filled)
    best = max(
        (one for one in (dates, numbers, times) if one is not None), key=lambda one: one[1], default=None
    )
    if best is None:
        return None
    found, fits = best
    if asked is not None or fits >= ENOUGH * total:
        return found
    return _explain_mixture(found, fits, filled) if fits >= _MANY * total else None


def _is_promising(texts: list[str]) -> bool:
    """Return whether half of the texts are numbers, dates or times."""
    likely = sum(
        split_number(text) is not None
        or read_date(text, "s", True) is not None
        or read_time(text) is not None
        for text in texts
        if any(character.isdigit() for character in text)
    )
    return 2 * likely >= len(texts)


def _as_numbers(filled: Mapping[str, int], decimal_comma: bool) -> tuple[Guess, int] | None:
    written = {text: found for text in filled if (found := split_number(text)) is not None}
    if not written:
        return None
    # One scale everywhere is a unit like any other; `305k` beside `305000` or `$1.2M` is not, but `300 K` is Kelvin.
    scales = {found.scale for found in written.values()}
    with_unit = any(found.scale and found.affix for found in written.values())
    scaled = (len(scales) > 1 or with_unit) and scales.isdisjoint(
        found.affix for found in written.values() if found.affix
    )
    affix_of = {text: found.affix if scaled else found.whole_affix for text, found in written.items()}
    affixes: Counter[str] = Counter()
    for text, found_affix in affix_of.items():
        affixes[found_affix] += filled[text] if found_affix else 0
    affix = affixes.most_common(1)[0][0]
    usable = {text: found.digits for text, found in written.items() if affix_of[text] in ("", affix)}
    best: tuple[int, str, str] = (-1, "", "")
    for decimal, thousands in _COMMA_SIGNS if decimal_comma else _SIGNS:
        form = number_form(decimal, thousands)
        fits = sum(filled[text] for text, digits in usable.items() if form.fullmatch(digits))
        if fits > best[0]:
            best = fits, decimal, thousands
    fits, decimal, thousands = best
    taken_off = [f"{affix!r} taken off"] if affix else []
    taken_off += [f"{_NAMES[thousands]} between thousands"] if thousands else []
    taken_off += [_name_scales(written.values())] if scaled else []
    has_comma = decimal == "," and any("," in digits for digits in usable.values())
    taken_off += ["decimal comma"] if has_comma else []
    return Guess(
        CellReading("number", decimal, thousands, affix, scaled), ", ".join(["number", *taken_off])
    ), fits


def _name_scales(written: Iterable[WrittenNumber]) -> str:
    """Name the scales of a column's numbers with their factors: `'k' times 1,000`."""
    scales = {found.scale: found.factor for found in written if found.scale}
    return ", ".join(f"{scale!r} times {factor:,.0f}" for scale, factor in sorted(scales.items()))


def _as_dates(filled: Mapping[str, int], asked: bool) -> tuple[Guess, int] | None:
    fits = {text: count for text, count in filled.items() if read_date(text, "s", True) is not None}
    if not fits or (not asked and all(text.replace(".", "", 1).isdigit() for text in fits)):
        # A column of nothing but serial numbers holds numbers.
        return None
    first = sum(count for text, count in fits.items() if day_order(text) is True)
    second = sum(count for text, count in fits.items() if day_order(text) is False)
    unit = "s" if any(map(has_time, fits)) else "D"
    how = "date"
    if any(map(is_two_numbers, fits)):
        how += ", day/month/year" if first >= second else ", month/day/year"
        how += "" if first or second else " (it could be month/day/year)"
        other = next((text for text in fits if not is_two_numbers(text)), None)
        how += "" if other is None else f"; others, such as {_shorten(other)!r}, were read too"
    return Guess(CellReading("date", day_first=first >= second, unit=unit), how), sum(fits.values())


def _as_times(filled: Mapping[str, int]) -> tuple[Guess, int] | None:
    fits = sum(count for text, count in filled.items() if read_time(text) is not None)
    return (Guess(CellReading("number", affix=TIME), "time, in seconds"), fits) if fits else None


def _explain_mixture(found: Guess, fits: int, filled: Mapping[str, int]) -> Guess | None:
    if found.reading is None:
        return None
    other = next((text for text in filled if not _is_read(found.reading, text)), None)
    if other is None or len(filled) <= 2:
        return None
    what = "times" if found.reading.affix == TIME else "dates" if found.reading.kind == "date" else "numbers"
    share = 100 * fits / sum(filled.values())
    shown = f"such as {_shorten(other)!r}"
    written = split_number(other)
    if what == "numbers" and written is not None and written.affix not in ("", found.reading.affix):
        units = f"numbers in {found.reading.affix}, others are in {written.affix}"
        return Guess(None, f"{share:.0f} % of its cells are {units}, {shown}: convert them to one unit")
    return Guess(None, f"{share:.0f} % of its cells are {what}, others are not, {shown}")


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _is_read(reading: CellReading, text: str) -> bool:
    try:
        reading.read(text)
    except ValueError:
        return False
    return True
