"""Columns of categories in which each word is read in only one way: without spaces around it, and in one case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from stoker.data.category_words import choose_words, fold_word, tidy_word
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
    """

    def __init__(self, usual: Mapping[str, Mapping[str, str]]) -> None:
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
        if tidy == texts:
            return values
        self._count(name, encoded, texts, tidy)
        found = pa.array(tidy, pa.string()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(found.indices.take(encoded.indices), found.dictionary)

    def _count(self, name: str, encoded: pa.Array, texts: list[str | None], tidy: list[str | None]) -> None:
        trimmed = np.array([text is not None and text != text.strip() for text in texts] + [False])
        self._trimmed[name] += int(trimmed[view(encoded.indices.cast(pa.int32()), len(texts))].sum())
        merged = self._merged.setdefault(name, {})
        for text, word in zip(texts, tidy, strict=True):
            if text is not None and word is not None and text.strip() != word:
                merged[text.strip()] = word

    def found(self) -> dict[str, Any]:
        """Return as JSON, by column, which words were read as others, and how many cells had spaces around them."""
        return {
            "merged": {name: list(map(list, words.items())) for name, words in self._merged.items() if words},
            "trimmed": {name: count for name, count in self._trimmed.items() if count},
        }
