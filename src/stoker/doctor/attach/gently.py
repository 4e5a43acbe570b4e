"""Long loops of ours in the program's process, which must not hold Python's lock."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
# While we hold Python's lock the program waits: read a little, then pause.
_CHUNK, _PAUSE_S = 200, 0.0005


def gently(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, with an occasional pause that lets the program's own threads run."""
    for index, item in enumerate(items, 1):
        yield item
        if index % _CHUNK == 0:
            time.sleep(_PAUSE_S)
