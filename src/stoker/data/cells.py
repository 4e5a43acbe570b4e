"""Turn one cell of a table, written as text, into a value, in the same way for training and prediction.

A `CellReading` says how the cells of a column are written. It needs neither pyarrow nor TensorFlow, so that a server
can use it, and it is stored in the bundle.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final, TypeAlias

from stoker.data.category_words import choose_words, tidy_word
from stoker.data.cell_dates import read_date
from stoker.data.cell_times import read_time

# The value of a cell: a number, or a count of a unit since 1970; None if it is missing.
CellValue: TypeAlias = float | int | None

_GAP_WORDS = """
    na n/a #n/a #na n.a. n.a <na> nan +nan -nan nat null (null) none nil k.a. unknown unk missing tbd \\n
    - -- --- \u2013 \u2014 _ ? ?? ??? . .. ... \u2026 * / #value! #ref! #div/0! #num! #name? #null!
    1.#ind -1.#ind 1.#qnan -1.#qnan
"""
_GAP_PHRASES = ("", "#n/a n/a", "n. a.", "k. a.", "not available", "not applicable", "no data")
# Texts that stand for a missing value, in lower case.
USUAL_GAPS: Final = frozenset((*_GAP_WORDS.split(), *_GAP_PHRASES))
_TRUTHS: Final = {
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1", "1.0"), 1.0),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0", "0.0"), 0.0),
}
_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_INFINITE = re.compile(r"(?i)[-+]?inf(?:inity)?")
# Typographic signs, and the signs of a keyboard that replace them.
_SIGNS = str.maketrans("\u2212\u00a0\u202f\u2009\u2019", "-   '", "\ufeff")
_POWERS = str.maketrans("\u00b2\u00b3", "23")
# Words that say that a number is not exact: `ca. 46 m2`.
_ROUGHLY = re.compile(
    r"(?:(?:ca|circa|c|approx|etwa|env)\b\.?|[~≈])\s*(?=[^\W_]{0,3}\s*[\d$€£¥])", re.IGNORECASE
)
# The dash in the place of cents: `125.-`.
_NO_CENTS = re.compile(r"(?<=\d)[.,]\s?[-\u2013\u2014]{1,2}(?=$|\s)")
# A sign, the text before the number, a sign, the number, a power of ten, the text after it.
_PARTS = re.compile(
    r"([-+]?)\s*((?:[^\W\d_]{1,3}\.?|[^\W\d_]?[$€£¥₹₽₩₺₴₿฿])?)\s*([-+]?)\s*(\d[\d.,' ]*|[.,]\d+)([eE][-+]?\d+)?\s*(.*)",
    re.DOTALL,
)
_SUFFIX = re.compile(r"[^\d\s(),;:=+\-./_].{0,15}", re.DOTALL)
_CURRENCY_CODES = """
    r$ a$ c$ usd eur gbp chf jpy inr rs kr sek nok dkk pln zł czk kč huf ft rub try brl cad aud nzd cny rmb sgd hkd mxn
    zar krw thb myr idr rp php vnd ils aed sar fr sfr
"""
# Letters and words for thousands and millions; letters only count right after a digit, as in 1.2M.
_SCALE = re.compile(
    r"(?:(?<=\d)(?P<letter>[kKM])"
    r"|(?P<word>(?i:tsd|thousand|mio|mln|mn|million|millions|mrd|bn|billion|billions))\.?)(?![^\W\d_])\s*"
)
_SCALES: Final = {
    **dict.fromkeys(("k", "tsd", "thousand"), 1e3),
    **dict.fromkeys(("m", "mio", "mln", "mn", "million", "millions"), 1e6),
    **dict.fromkeys(("mrd", "bn", "billion", "billions"), 1e9),
}
# Codes and signs of currencies, which may stand before a number. With any other text before it, a cell is a name, such
# as A12.
CURRENCIES: Final = frozenset((*"$€£¥₹₽₩₺₴₿฿", *_CURRENCY_CODES.split()))
# Ways to write the same unit, in lower case. Signs that several currencies share, such as `kr`, are not here.
_SAME_UNITS: Final = {
    other: unit
    for unit, *others in (
        ("€", "eur", "euro", "euros"),
        ("$", "usd", "us$"),
        ("£", "gbp"),
        ("¥", "jpy"),
        ("m2", "qm", "sqm", "sq m", "sq.m"),
        ("m3", "cbm"),
    )
    for other in others
}
# Stands in place of a unit for columns of times; it can never be the text after a number.
TIME: Final = ":"


class BadCellError(ValueError):
    """A cell that cannot be read."""


@dataclass(frozen=True)
class WrittenNumber:
    """The parts of a number as somebody wrote it.

    Attributes:
        digits: the digits, with decimal and thousands signs.
        negative: whether it has a minus sign or is in parentheses.
        power: the power of ten, such as "e-3".
        written: the currency or unit around it.
        scale: the letter or word for thousands or millions, in lower case: the "k" of 305k.
    """

    digits: str
    negative: bool
    power: str
    written: str
    scale: str = ""

    @property
    def affix(self) -> str:
        """The currency or unit in lower case."""
        return self.written.translate(_POWERS).lower()

    @property
    def whole_affix(self) -> str:
        """The scale and the affix together."""
        return self.scale + self.affix

    @property
    def factor(self) -> float:
        """The factor by which the scale multiplies the number."""
        return _SCALES.get(self.scale, 1.0)


def is_usual_gap(text: str) -> bool:
    """Return whether a text stands for a missing value, whatever its case and the spaces around it."""
    return text.strip().lower() in USUAL_GAPS


def split_number(text: str) -> WrittenNumber | None:
    """Split a cell that is a number with a unit, a currency or thousands signs; None if it is something else."""
    text = _NO_CENTS.sub("", _ROUGHLY.sub("", text.translate(_SIGNS).strip(), 1), 1)
    in_brackets = text.startswith("(") and text.endswith(")")
    found = _PARTS.fullmatch(text[1:-1].strip() if in_brackets else text)
    if found is None:
        return None
    first, before, second, digits, power, after = found.groups()
    before, after = before.rstrip("."), after.strip()
    if (first and second) or (before and before.lower() not in CURRENCIES):
        return None
    after, scale = _take_scale(digits, after)
    if after and (_SUFFIX.fullmatch(after) is None or (before and after.lower() not in CURRENCIES)):
        return None
    negative = "-" in (first, second) or in_brackets
    return WrittenNumber(digits.strip(), negative, power or "", before or after.rstrip("."), scale)


def unit_of(affix: str) -> str:
    """Return the unit that an affix, in lower case, stands for: `eur` and `€` are one."""
    plain = affix.translate(_SIGNS).translate(_POWERS)
    return _SAME_UNITS.get(plain, plain)


def _take_scale(digits: str, after: str) -> tuple[str, str]:
    """Split the text after a number into the text without its `k` or `million`, and that scale in lower case."""
    # The pattern looks at the character before, so it sees the digits, too.
    found = _SCALE.match(digits + after, len(digits))
    if found is None:
        return after, ""
    return after[found.end() - len(digits) :], (found["letter"] or found["word"]).lower()


@functools.lru_cache(64)
def number_form(decimal: str, thousands: str) -> re.Pattern[str]:
    """Return the pattern of the digits of a number that is written with these signs."""
    point = re.escape(decimal)
    plain = rf"\d+(?:{point}\d*)?|{point}\d+"
    if not thousands:
        return re.compile(plain)
    sign = re.escape(thousands)
    return re.compile(rf"[1-9]\d{{0,2}}(?:{sign}\d{{3}})+(?:{point}\d*)?|{plain}")


@dataclass(frozen=True)
class CellReading:
    """How the cells of a column are read.

    Attributes:
        kind: the kind of the column: "number", "whole", "truth", "category", "text" or "date".
        decimal: the decimal sign.
        thousands: the sign between thousands; empty if there is none.
        affix: the currency or unit that is removed, in lower case; `TIME` for times, which are read as seconds.
        scaled: whether `k` and `million` after a number multiply it, because only some of the cells have them.
        day_first: whether 3/4/2026 is in April.
        unit: for a date: "D", "s", "ms", "us" or "ns".
        gaps: texts that stand for a missing value, in addition to the usual ones.
        tolerant: whether a cell that cannot be read counts as missing, because the training file has such cells.
        fill: the value for a missing cell, if the model cannot take one.
        trimmed: for a category: whether spaces around its words are ignored.
        words: for a category: ordinary words that are recognised in any case.
        blank: for a category: whether the usual texts for a missing value, such as `N/A`, are read as an empty word.
    """

    kind: str
    decimal: str = "."
    thousands: str = ""
    affix: str = ""
    scaled: bool = False
    day_first: bool = True
    unit: str = ""
    gaps: tuple[str, ...] = ()
    tolerant: bool = False
    fill: float | None = None
    trimmed: bool = False
    words: tuple[str, ...] = ()
    blank: bool = False

    @functools.cached_property
    def _chosen(self) -> dict[str, str]:
        return choose_words(self.words)

    def read_word(self, text: str) -> str:
        """Return the word of a category."""
        if self.blank and is_usual_gap(text):
            return ""
        return tidy_word(text, self._chosen) if self.trimmed else text

    def read(self, text: str) -> CellValue:
        """Return the value of a cell of numbers, truth values or dates.

        Raises:
            BadCellError: the cell cannot be read, and is not missing.
        """
        if text in self.gaps or is_usual_gap(text):
            return None
        if self.kind == "truth":
            value: CellValue = _TRUTHS.get(text.strip().lower())
        elif self.kind == "date":
            value = read_date(text, self.unit or "s", self.day_first)
        else:
            value = self._number(text)
        if value is None:
            raise BadCellError(text)
        return value

    def _number(self, text: str) -> float | int | None:
        plain = text.strip()
        if not self.thousands and self.decimal == "." and _PLAIN.fullmatch(plain):
            return _parse_exactly(plain) if self.kind == "whole" else float(plain)
        if self.affix == TIME:
            return read_time(plain)
        if _INFINITE.fullmatch(plain):
            return None if self.tolerant else float(plain)
        found = split_number(text)
        if found is None:
            return None
        affix = found.affix if self.scaled else found.whole_affix
        if affix and unit_of(affix) != unit_of(self.affix):
            return None
        if number_form(self.decimal, self.thousands).fullmatch(found.digits) is None:
            return None
        digits = found.digits.replace(self.thousands, "") if self.thousands else found.digits
        value = float(digits.replace(self.decimal, ".") + found.power) * (
            found.factor if self.scaled else 1.0
        )
        return -value if found.negative else value

    def to_json(self) -> dict[str, Any]:
        """Return the reading as JSON, without the fields that have their defaults."""
        return {
            one.name: value
            for one in fields(self)
            if (value := asdict(self)[one.name]) != one.default or one.name == "kind"
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CellReading:
        """Read what `to_json` returned; fields that a later version has added are ignored.

        Raises:
            TypeError: it is not a number.
        """
        names = {one.name: one for one in fields(CellReading)}
        known = {name: value for name, value in data.items() if name in names}
        texts = ("kind", "decimal", "thousands", "affix", "unit")
        gaps, fill, words = known.get("gaps", ()), known.get("fill"), known.get("words", ())
        if not all(isinstance(known.get(name, ""), str) for name in texts) or "kind" not in known:
            raise TypeError("the way to read a column is not a string")
        if not isinstance(gaps, list | tuple) or not all(isinstance(one, str) for one in gaps):
            raise TypeError("the values that count as missing are not strings")
        if not isinstance(words, list | tuple) or not all(isinstance(one, str) for one in words):
            raise TypeError("the words of a category are not strings")
        if not (fill is None or (isinstance(fill, int | float) and math.isfinite(fill))):
            raise TypeError("the value for missing cells is not a number")
        return CellReading(**{**known, "gaps": tuple(gaps), "words": tuple(words)})


def _parse_exactly(text: str) -> float | int:
    """Return a whole number as an `int`: float64 would round large ones."""
    try:
        return int(text)
    except ValueError:
        return float(text)
