"""For engines that are made for one number of rows: powers of two up to 256, filled up; more rows in parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stoker.serve.batching import Run

_MOST_ROWS = 256


def padded(run: Callable[[list[Any], int], list[Any]]) -> Run:
    """A function for any number of rows, from one that is given a power of two."""

    def filled(arrays: list[Any], rows: int) -> list[Any]:
        room = 1 << (rows - 1).bit_length()
        if room == rows:
            return run(arrays, room)
        # With the last row again: its answer is as good as any, and zeros might be no valid row.
        full = [np.concatenate([one, np.repeat(one[-1:], room - rows, axis=0)]) for one in arrays]
        return [one[:rows] for one in run(full, room)]

    def parted(arrays: list[Any]) -> list[Any]:
        rows = len(arrays[0])
        if rows <= _MOST_ROWS:
            return filled(arrays, rows)
        parts = [
            filled([one[first : first + _MOST_ROWS] for one in arrays], min(_MOST_ROWS, rows - first))
            for first in range(0, rows, _MOST_ROWS)
        ]
        return [np.concatenate(one) for one in zip(*parts, strict=True)]

    return parted
