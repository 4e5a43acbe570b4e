"""Run `model.tflite` with LiteRT.

An interpreter has memory for a fixed number of rows and serves one caller at a time. One is made for each power of two
when first needed, and more if callers overlap.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.serve.batching import Run
from stoker.serve.engines.padding import pad_rows
from stoker.serve.signature import Array, Field

if TYPE_CHECKING:
    from ai_edge_litert.interpreter import Interpreter


def load(file: Path, inputs: Sequence[Field], outputs: Sequence[Field]) -> Run:
    """Load the file.

    Raises:
        ValueError, RuntimeError: the file cannot be loaded.
    """
    interpreters = _Interpreters(file.read_bytes(), inputs, outputs)
    interpreters.give_back(1, interpreters.take(1))  # any error shows now
    return pad_rows(interpreters.run)


def input_order(content: bytes, inputs: Sequence[Field]) -> list[int]:
    """Return the places of the inputs in the order that the file has them."""
    takes = _interpreter(content).get_signature_runner().get_input_details()
    return sorted(range(len(inputs)), key=lambda place: int(takes[inputs[place].tensor]["index"]))


class _Interpreters:
    """The free interpreters, by number of rows."""

    def __init__(self, content: bytes, inputs: Sequence[Field], outputs: Sequence[Field]) -> None:
        self._content = content
        self._shapes = [[size or 1 for size in field.shape] for field in inputs]
        runner = _interpreter(content).get_signature_runner()
        takes, gives = runner.get_input_details(), runner.get_output_details()
        self._given = [int(takes[field.tensor]["index"]) for field in inputs]
        self._wanted = [int(gives[field.tensor]["index"]) for field in outputs]
        self._free: defaultdict[int, deque[Interpreter]] = defaultdict(deque)

    def take(self, rows: int) -> Interpreter:
        try:
            return self._free[rows].pop()
        except IndexError:
            made = _interpreter(self._content)
            for place, shape in zip(self._given, self._shapes, strict=True):
                made.resize_tensor_input(place, [rows, *shape])
            made.allocate_tensors()
            return made

    def give_back(self, rows: int, one: Interpreter) -> None:
        self._free[rows].append(one)

    def run(self, arrays: list[Array], rows: int) -> list[Array]:
        taken = self.take(rows)
        for place, array in zip(self._given, arrays, strict=True):
            taken.set_tensor(place, array)
        taken.invoke()
        answers = [taken.get_tensor(place) for place in self._wanted]
        self.give_back(rows, taken)
        return answers


def _interpreter(content: bytes) -> Interpreter:
    from ai_edge_litert.interpreter import Interpreter

    return Interpreter(model_content=content, num_threads=1)
