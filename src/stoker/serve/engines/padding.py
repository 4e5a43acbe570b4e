"""Run any number of rows on engines made for a fixed one: pad to a power of two up to 256, and split larger batches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stoker.serve.batching import Run
from stoker.serve.signature import Array

_MOST_ROWS = 256


def pad_rows(run: Callable[[list[Array], int], list[Array]]) -> Run:
    """Make a function for any number of rows from one that takes powers of two."""

    def fill(arrays: list[Array], rows: int) -> list[Array]:
        room = 1 << (rows - 1).bit_length()
        if room == rows:
            return run(arrays, room)
        # Repeat the last row: zeros might not be a valid one.
        full = [np.concatenate([one, np.repeat(one[-1:], room - rows, axis=0)]) for one in arrays]
        return [one[:rows] for one in run(full, room)]

    def run_in_parts(arrays: list[Array]) -> list[Array]:
        rows = len(arrays[0])
        if rows <= _MOST_ROWS:
            return fill(arrays, rows)
        parts = [
            fill([one[first : first + _MOST_ROWS] for one in arrays], min(_MOST_ROWS, rows - first))
            for first in range(0, rows, _MOST_ROWS)
        ]
        return [np.concatenate(one) for one in zip(*parts, strict=True)]

    return run_in_parts
