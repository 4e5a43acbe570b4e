"""The words of a category as people write them: spaces around them, and one word in several cases.

`bern`, `BERN` and `Bern ` are Bern. Only ordinary words in lower case, in capitals, or with a first capital letter
count as the same; short words and codes that differ only in case stay different.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# A shorter word may mean something else in capitals: m and M, Co and CO.
_LEAST_LETTERS = 3
_SHORT_WORDS = ("no", "ja", "si", "on")


def fold_word(word: str) -> str | None:
    """Return one form for all ways to write an ordinary word; None for any other text."""
    small = word.lower()
    usual = (small, word.upper(), small.title(), small.capitalize())
    is_short = len(word) < _LEAST_LETTERS and small not in _SHORT_WORDS
    if is_short or word not in usual or any(one.isdigit() for one in word):
        return None
    return word.casefold()


def choose_words(words: Iterable[str]) -> dict[str, str]:
    """Choose the word that stands for all ways to write it: the first one in this order."""
    found: dict[str, str] = {}
    for word in words:
        if (folded := fold_word(word)) is not None:
            found.setdefault(folded, word)
    return found


def tidy_word(text: str, chosen: Mapping[str, str]) -> str:
    """Return the text without spaces around it, replaced by the chosen word if it is one."""
    word = text.strip()
    folded = fold_word(word)
    return word if folded is None else chosen.get(folded, word)
