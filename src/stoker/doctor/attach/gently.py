"""Long loops of Stoker's in the program's process. They must not hold Python's lock all the time."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
# The program waits while we hold Python's lock: handle a few items, then pause.
_CHUNK, _PAUSE_S = 200, 0.0005


def gently(items: Iterable[T]) -> Iterator[T]:
    """Yield the items, with an occasional pause that lets the program's own threads run."""
    for index, item in enumerate(items, 1):
        yield item
        if index % _CHUNK == 0:
            time.sleep(_PAUSE_S)
