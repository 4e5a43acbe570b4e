"""The words of a category as people write them: spaces around them, and one word in several cases.

`bern`, `BERN` and `Bern ` are Bern. Only ordinary words are taken for each other, written small, in capitals, or with a
capital letter in front; short words and codes may differ in case alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# A shorter word may well mean something else in capitals: m and M, Co and CO.
_LEAST_LETTERS = 3
_SHORT_WORDS = ("no", "ja", "si", "on")


def fold_word(word: str) -> str | None:
    """What all ways to write an ordinary word have in common; None for any other text."""
    small = word.lower()
    usual = (small, word.upper(), small.title(), small.capitalize())
    is_short = len(word) < _LEAST_LETTERS and small not in _SHORT_WORDS
    if is_short or word not in usual or any(one.isdigit() for one in word):
        return None
    return word.casefold()


def choose_words(words: Iterable[str]) -> dict[str, str]:
    """The word that stands for all ways to write it: the first one in this order."""
    found: dict[str, str] = {}
    for word in words:
        if (folded := fold_word(word)) is not None:
            found.setdefault(folded, word)
    return found


def tidy_word(text: str, chosen: Mapping[str, str]) -> str:
    """The text without spaces around it, as the chosen word if it is one."""
    word = text.strip()
    folded = fold_word(word)
    return word if folded is None else chosen.get(folded, word)
