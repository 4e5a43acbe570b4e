"""`model.tflite` on LiteRT.

An interpreter has memory for one number of rows and one caller. There is one for each power of two, made when it is
first needed; callers that meet get another.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stoker.serve.batching import Run
from stoker.serve.engines.padding import padded
from stoker.serve.signature import Field


def loaded(file: Path, inputs: Sequence[Field], outputs: Sequence[Field]) -> Run:
    """A function over the file.

    Raises:
        ValueError, RuntimeError: it cannot be loaded.
    """
    interpreters = _Interpreters(file.read_bytes(), inputs, outputs)
    interpreters.give_back(1, interpreters.take(1))  # what is wrong with it shows now
    return padded(interpreters.run)


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
        taken = self.take(rows)
        for place, array in zip(self._given, arrays, strict=True):
            taken.set_tensor(place, array)
        taken.invoke()
        answers = [taken.get_tensor(place) for place in self._wanted]
        self.give_back(rows, taken)
        return answers


def _interpreter(content: bytes) -> Any:
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(model_content=content, num_threads=1)
