"""Columns of categories in which each word is read in only one way: without spaces around it, and in one case.

Texts that stand for a missing value, such as `N/A`, are all read as the empty word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from stoker.data.category_words import choose_words, fold_word, tidy_word
from stoker.data.cells import is_usual_gap
from stoker.data.ingest import view

# Categories with more values than this are names or codes: they only lose the spaces around them.
_MOST_WORDS = 1_000


def find_usual_words(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the most common way to write each ordinary word."""
    plain: Counter[str] = Counter()
    for text, count in counts.items():
        plain[text.strip()] += count
    if len(plain) > _MOST_WORDS:
        return {}
    return choose_words(sorted(plain, key=lambda word: (-plain[word], word)))


class TidyCategories:
    """The categories of one pass over a table.

    Args:
        usual: by column, the most common way to write each ordinary word; later words are added.
        label: the column whose cells name classes; `None` and `unknown` may be such names.
    """

    def __init__(self, usual: Mapping[str, Mapping[str, str]], label: str | None = None) -> None:
        self._label = label
        self._blank: Counter[str] = Counter()
        self._usual = {name: dict(words) for name, words in usual.items()}
        self._merged: dict[str, dict[str, str]] = {}
        self._trimmed: Counter[str] = Counter()

    def read(self, name: str, values: pa.Array) -> pa.Array:
        """Return the cells of a block, with each word in its usual form."""
        encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        usual = self._usual.setdefault(name, {})
        for text in texts if len(usual) < _MOST_WORDS else ():
            if text is not None and (folded := fold_word(text.strip())) is not None:
                usual.setdefault(folded, text.strip())
        tidy = [text if text is None else tidy_word(text, usual) for text in texts]
        if name != self._label:
            gaps = [text is not None and is_usual_gap(text) for text in texts]
            self._blank[name] += _count_cells(encoded, gaps)
            tidy = ["" if gap else word for gap, word in zip(gaps, tidy, strict=True)]
        if tidy == texts:
            return values
        self._count(name, encoded, texts, tidy)
        found = pa.array(tidy, pa.string()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(found.indices.take(encoded.indices), found.dictionary)

    def _count(self, name: str, encoded: pa.Array, texts: list[str | None], tidy: list[str | None]) -> None:
        spaced = [
            bool(word) and text is not None and text != text.strip()
            for text, word in zip(texts, tidy, strict=True)
        ]
        self._trimmed[name] += _count_cells(encoded, spaced)
        merged = self._merged.setdefault(name, {})
        for text, word in zip(texts, tidy, strict=True):
            if text is not None and word and text.strip() != word:
                merged[text.strip()] = word

    def found(self) -> dict[str, Any]:
        """Return as JSON, by column: words read as others, and how many cells had spaces around them or are missing."""
        return {
            "merged": {name: list(map(list, words.items())) for name, words in self._merged.items() if words},
            "trimmed": {name: count for name, count in self._trimmed.items() if count},
            "blank": {name: count for name, count in self._blank.items() if count},
        }


def _count_cells(encoded: pa.Array, texts: Sequence[bool]) -> int:
    """Return how many cells hold one of the chosen texts of the dictionary."""
    chosen = np.array([*texts, False])
    return int(chosen[view(encoded.indices.cast(pa.int32()), len(texts))].sum())
