"""Guess from a column's texts how its cells are written: units, currencies, thousands signs, forms of dates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from stoker.data.cell_dates import day_order, has_time, is_two_numbers, read_date
from stoker.data.cell_times import read_time
from stoker.data.cells import (
    CURRENCIES,
    TIME,
    CellReading,
    WrittenNumber,
    is_usual_gap,
    number_form,
    split_number,
    unit_of,
)

# The share of a column's cells that must agree, and the share from which the column deserves a note if they do not.
ENOUGH, _MANY = 0.9, 0.5
# Units with this share of the cells are no slips; how many units a message names.
_FREQUENT, _UNITS_SHOWN = 0.05, 4
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
    filled = {text: count for text, count in counts.items() if text not in gaps and not is_usual_gap(text)}
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
    return _explain_mixture(found, fits, filled)


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
    units: Counter[str] = Counter()
    spellings: Counter[tuple[str, str]] = Counter()
    for text, found_affix in affix_of.items():
        if found_affix:
            units[unit_of(found_affix)] += filled[text]
            spellings[unit_of(found_affix), found_affix] += filled[text]
    unit = max(units, key=units.__getitem__, default="")
    affix = max((one for one in spellings if one[0] == unit), key=spellings.__getitem__, default=("", ""))[1]
    usable = {text: found.digits for text, found in written.items() if unit_of(affix_of[text]) in ("", unit)}
    best: tuple[int, str, str] = (-1, "", "")
    for decimal, thousands in _COMMA_SIGNS if decimal_comma else _SIGNS:
        form = number_form(decimal, thousands)
        fits = sum(filled[text] for text, digits in usable.items() if form.fullmatch(digits))
        if fits > best[0]:
            best = fits, decimal, thousands
    fits, decimal, thousands = best
    taken_off = [f"{_show_unit(unit, filled, scaled)!r} taken off"] if affix else []
    taken_off += [f"{_NAMES[thousands]} between thousands"] if thousands else []
    taken_off += [_name_scales(written.values())] if scaled else []
    has_comma = decimal == "," and any("," in digits for digits in usable.values())
    taken_off += ["decimal comma"] if has_comma else []
    return Guess(
        CellReading("number", decimal, thousands, affix, scaled), ", ".join(["number", *taken_off])
    ), fits


def _show_unit(unit: str, filled: Mapping[str, int], scaled: bool) -> str:
    """Return a unit as the file writes it most often."""
    counts: Counter[tuple[str, str]] = Counter()
    for text, count in filled.items():
        found = split_number(text)
        if found is not None and unit_of(found.affix if scaled else found.whole_affix) == unit:
            counts["" if scaled else found.scale, found.written] += count
    return "".join(counts.most_common(1)[0][0])


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
    """Explain why a column is words although many of its cells are not, by the most frequent misfits."""
    if found.reading is None or len(filled) <= 2:
        return None
    total = sum(filled.values())
    odd = {text: count for text, count in filled.items() if not _is_read(found.reading, text)}
    misread = sum(count for text, count in odd.items() if split_number(text) is not None)
    is_number = found.reading.kind == "number" and found.reading.affix != TIME
    if is_number and 2 * misread >= sum(odd.values()) and (units := _count_units(filled, fits)):
        return Guess(None, f"its numbers have different units: {units}")
    if not odd or fits < _MANY * total:
        return None
    what = "times" if found.reading.affix == TIME else "dates" if found.reading.kind == "date" else "numbers"
    example = max(odd, key=odd.__getitem__)
    return Guess(
        None,
        f"{100 * fits / total:.0f} % of its cells are {what}, others are not, such as {_shorten(example)!r}",
    )


def _count_units(filled: Mapping[str, int], fits: int) -> str:
    """Say how many numbers have which unit; nothing if it seems that they are no units, as in 1st, 2nd and 3rd."""
    counts: Counter[str] = Counter()
    plain = 0
    for text, count in filled.items():
        found = split_number(text)
        if found is not None and found.whole_affix:
            counts[unit_of(found.whole_affix)] += count
        elif found is not None:
            plain += count
    total = sum(filled.values())
    frequent = [unit for unit, count in counts.items() if count >= _FREQUENT * total]
    # House numbers have single letters.
    are_units = any(len(unit) > 1 for unit in frequent) and fits >= _MANY * total
    are_units = are_units or CURRENCIES.issuperset(frequent)
    if plain + counts.total() < _MANY * total or len(frequent) < 2 or not are_units:
        return ""
    shown = [
        f"{count:,} in {_show_unit(unit, filled, False)}" for unit, count in counts.most_common(_UNITS_SHOWN)
    ]
    rest = counts.total() - sum(count for _, count in counts.most_common(_UNITS_SHOWN))
    shown += [f"{rest:,} in others"] if rest else []
    shown += [f"{plain:,} without one"] if plain else []
    return ", ".join(shown)


def _shorten(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _is_read(reading: CellReading, text: str) -> bool:
    try:
        reading.read(text)
    except ValueError:
        return False
    return True
