"""Dates as people write them: ISO, 31/12/2026, 12/31/2026, 31.12.26, 5 Mar 2026, March 5, 2026, spreadsheet serials."""

from __future__ import annotations

import datetime
import re
from typing import Final

# How many of each unit make a second; days are counted as wholes.
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH: Final = datetime.date(1970, 1, 1).toordinal()
# Day 0 of spreadsheets, in days since 1970.
_SERIAL_ZERO: Final = -25_569
_LEAST_SERIAL, _MOST_SERIAL = 10_000, 80_000
_LEAST_SECONDS, _MOST_SECONDS = 10**8, 10**10

_TIME = (
    r"(?:(?:T|,?\s+|(?<=\d):)(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))(?::(?P<second>\d{2})(?:[.,](?P<part>\d{1,9}))?)?"
    r"\s*(?P<half>[aApP]\.?[mM]\.?)?\s*(?P<zone>Z|UTC|GMT|[-+]\d{2}:?\d{2})?)?"
)
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
_FORMS: Final = tuple(
    re.compile(_WEEKDAY + form + _TIME, re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})",
        r"(?P<first>\d{1,2})(?P<sign>[-/.])(?P<second_>\d{1,2})(?P=sign)(?P<year>\d{4}|\d{2})",
        r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?[\s\-/.]*(?P<name>[^\W\d_]{3,10})\.?,?[\s\-/.]*(?P<year>\d{4}|\d{2})",
        r"(?P<name>[^\W\d_]{3,10})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})",
        r"(?P<year>(?:19|20)\d{2})(?P<month>0[1-9]|1[0-2])(?P<day>0[1-9]|[12]\d|3[01])",
    )
)
_PLAIN_NUMBER: Final = re.compile(r"\d{5,13}(?:\.\d+)?")
# The first letters of the months' names, in English, German, French and Spanish.
_MONTH_NAMES = (
    *("jan ene", "feb fév fev", "mar mär mae", "apr avr abr", "may mai", "jun juin", "jul juil"),
    *("aug aoû aou ago", "sep set", "oct okt", "nov", "dec dez déc dic"),
)
_MONTHS: Final = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}


def read_date(text: str, unit: str, day_first: bool) -> int | None:
    """Read a date or a time as a count of the unit since 1970, in UTC; None if the text is neither.

    Args:
        text: the cell.
        unit: "D", "s", "ms", "us" or "ns".
        day_first: whether 3/4/2026 is in April, as both are possible.
    """
    text = text.strip().strip("\ufeff'")
    for form in _FORMS:
        found = form.fullmatch(text)
        if found is not None:
            parts = found.groupdict()
            day = _day(parts, day_first)
            seconds = _seconds(parts)
            return None if day is None or seconds is None else _count(day, *seconds, unit)
    return _parse_number_as_time(text, unit) if _PLAIN_NUMBER.fullmatch(text) else None


def has_time(text: str) -> bool:
    """Return whether a date has a time of day."""
    return ":" in text or (_PLAIN_NUMBER.fullmatch(text.strip()) is not None and "." in text)


def day_order(text: str) -> bool | None:
    """Return whether the day comes before the month in a date such as 03/04/2026; None if the date does not show it."""
    found = _FORMS[1].fullmatch(text.strip())
    if found is None:
        return None
    first, second = int(found["first"]), int(found["second_"])
    return None if max(first, second) <= 12 or min(first, second) > 12 else first > 12


def is_two_numbers(text: str) -> bool:
    """Return whether a date gives its day and its month as numbers, before the year."""
    return _FORMS[1].fullmatch(text.strip()) is not None


def _day(parts: dict[str, str | None], day_first: bool) -> int | None:
    """Return the days since 1970."""
    year = int(parts["year"] or 0)
    if year < 100:
        # As in POSIX.
        year += 2000 if year < 69 else 1900
    if parts.get("first"):
        first, second = int(parts["first"] or 0), int(parts["second_"] or 0)
        if first > 12 or second > 12:
            day_first = first > 12
        day, month = (first, second) if day_first else (second, first)
    else:
        day = int(parts["day"] or 0)
        name = (parts.get("name") or "").lower()
        known = _MONTHS.get(name[:4]) or _MONTHS.get(name[:3])
        month = known or 0 if name else int(parts["month"] or 0)
    try:
        return datetime.date(year, month, day).toordinal() - _EPOCH
    except ValueError:
        return None


def _seconds(parts: dict[str, str | None]) -> tuple[int, int] | None:
    """Return the seconds since midnight in UTC, and the nanoseconds after them."""
    hour, minute, second = (int(parts.get(name) or 0) for name in ("hour", "minute", "second"))
    half = (parts.get("half") or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    if hour > 24 or minute > 59 or second > 60:
        return None
    zone = (parts.get("zone") or "").replace(":", "")
    if zone[:1] in ("+", "-"):
        away = int(zone[1:3]) * 60 + int(zone[3:5])
        minute -= away if zone[0] == "+" else -away
    return hour * 3600 + minute * 60 + second, int((parts.get("part") or "0").ljust(9, "0"))


def _count(day: int, seconds: int, nanoseconds: int, unit: str) -> int:
    if unit == "D":
        return day + seconds // 86_400
    per_second = _PER_SECOND[unit]
    return (day * 86_400 + seconds) * per_second + nanoseconds * per_second // 10**9


def _parse_number_as_time(text: str, unit: str) -> int | None:
    """Read a serial number of a spreadsheet, or seconds or milliseconds since 1970."""
    value = float(text)
    if _LEAST_SERIAL <= value <= _MOST_SERIAL:
        seconds = round((value + _SERIAL_ZERO) * 86_400)
    elif _LEAST_SECONDS <= value < _MOST_SECONDS:
        seconds = int(value)
    elif _LEAST_SECONDS * 1000 <= value < _MOST_SECONDS * 1000:
        seconds = int(value) // 1000
    else:
        return None
    return _count(0, seconds, 0, unit)
