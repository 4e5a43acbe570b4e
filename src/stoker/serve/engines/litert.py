"""`model.tflite` on LiteRT.

An interpreter has memory for one number of rows and one caller. There is one for each power of two up to 256, made when
it is first needed; rows in between are filled up, more are taken in parts; callers that meet get another.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stoker.serve.batching import Run
from stoker.serve.signature import Field

_MOST_ROWS = 256


def loaded(file: Path, inputs: Sequence[Field], outputs: Sequence[Field]) -> Run:
    """A function over the file.

    Raises:
        ValueError, RuntimeError: it cannot be loaded.
    """
    interpreters = _Interpreters(file.read_bytes(), inputs, outputs)
    interpreters.give_back(1, interpreters.take(1))  # what is wrong with it shows now

    def run(arrays: list[Any]) -> list[Any]:
        rows = len(arrays[0])
        if rows <= _MOST_ROWS:
            return interpreters.run(arrays, rows)
        parts = [
            interpreters.run(
                [one[first : first + _MOST_ROWS] for one in arrays], min(_MOST_ROWS, rows - first)
            )
            for first in range(0, rows, _MOST_ROWS)
        ]
        return [np.concatenate(one) for one in zip(*parts, strict=True)]

    return run


class _Interpreters:
    """Those that are free, by number of rows."""

    def __init__(self, content: bytes, inputs: Sequence[Field], outputs: Sequence[Field]) -> None:
        self._content = content
        self._shapes = [[size or 1 for size in field.shape] for field in inputs]
        runner = _interpreter(content).get_signature_runner()
        takes, gives = runner.get_input_details(), runner.get_output_details()
        self._given = [int(takes[field.tensor]["index"]) for field in inputs]
        self._wanted = [int(gives[field.tensor]["index"]) for field in outputs]
        self._free: defaultdict[int, deque[Any]] = defaultdict(deque)

    def take(self, rows: int) -> Any:
        try:
            return self._free[rows].pop()
        except IndexError:
            made = _interpreter(self._content)
            for place, shape in zip(self._given, self._shapes, strict=True):
                made.resize_tensor_input(place, [rows, *shape])
            made.allocate_tensors()
            return made

    def give_back(self, rows: int, one: Any) -> None:
        self._free[rows].append(one)

    def run(self, arrays: list[Any], rows: int) -> list[Any]:
        room = 1 << (rows - 1).bit_length()
        if room != rows:
            # With the last row again: its answer is as good as any, and zeros might be no valid row.
            arrays = [np.concatenate([one, np.repeat(one[-1:], room - rows, axis=0)]) for one in arrays]
        taken = self.take(room)
        for place, array in zip(self._given, arrays, strict=True):
            taken.set_tensor(place, array)
        taken.invoke()
        answers = [taken.get_tensor(place) for place in self._wanted]
        self.give_back(room, taken)
        return answers if room == rows else [one[:rows] for one in answers]


def _interpreter(content: bytes) -> Any:
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(model_content=content, num_threads=1)
