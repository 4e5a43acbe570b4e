"""Numbers and dates in a format that the readers take for words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

# How many words to check, and the share of them that must look alike.
_CHECKED, _MOST = 1_000, 0.95
_PLAIN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_DIGITS = r"\d[\d.,]*"
_NUMBERS = {
    "%": re.compile(rf"[-+]?{_DIGITS}\s?%"),
    "$": re.compile(rf"[-+(]?\$\s?[-+]?{_DIGITS}\)?|[-+]?{_DIGITS}\s?\$"),
    "€": re.compile(rf"[-+(]?€\s?[-+]?{_DIGITS}\)?|[-+]?{_DIGITS}\s?€"),
    "£": re.compile(rf"[-+(]?£\s?[-+]?{_DIGITS}\)?"),
    ",": re.compile(r"[-+]?(\d{1,3}(,\d{3})+(\.\d*)?|\d{1,3}(\.\d{3})*,\d+|\d+,\d+)"),
}
# A year has four digits, so that a version is not a date.
_DATES = re.compile(
    r"(\d{1,2}([./-])\d{1,2}\2\d{4}|\d{4}([./])\d{1,2}\3\d{1,2})([ T]\d{1,2}:\d{2}(:\d{2})?)?"
)


def looks_like(words: Sequence[str]) -> str | None:
    """What the values of a column look like and how to write them, for a message; None for plain words."""
    some = [word.strip() for word in islice(words, _CHECKED) if word.strip()]
    dates = [word for word in some if _DATES.fullmatch(word)]
    if dates and len(dates) >= _MOST * len(some):
        return f"dates, such as {dates[0]!r}: write them as YYYY-MM-DD"
    plain = sum(bool(_PLAIN.fullmatch(word)) for word in some)
    for sign, form in _NUMBERS.items():
        found = [word for word in some if form.fullmatch(word)]
        if found and len(found) + plain >= _MOST * len(some):
            return f"numbers written with {sign!r}, such as {found[0]!r}: write them as plain numbers, such as 1234.5"
    return None
