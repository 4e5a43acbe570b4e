"""A signature of a model that Stoker did not export, as protocols see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stoker.serve.foreign.loading import LoadedSignature
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.served import EXAMPLES, Answers, Ranking, ServedSignature
from stoker.serve.rows import InputRows, as_tensors, check_shapes
from stoker.serve.signature import Array, TensorField
from stoker.tf_internals.types import ProtoMessage

_CLASSES, _SCORES, _OUTPUTS = "classes", "scores", "outputs"


@dataclass(frozen=True)
class ForeignSignature(ServedSignature):
    """A signature whose tensors go to the model unchanged if they have the sizes that it declares.

    Attributes:
        loaded: the loaded signature that computes the answers.
        joins: whether requests may be answered together.
    """

    inputs: tuple[TensorField, ...]
    outputs: tuple[TensorField, ...]
    loaded: LoadedSignature
    joins: bool

    @property
    def takes_examples(self) -> bool:
        return [(one.name, one.dtype) for one in self.inputs] == [(EXAMPLES, "string")]

    def convert_rows(self, given: object, alone: str) -> InputRows:
        rows = as_tensors(self.inputs, given, self.joins)
        check_shapes(self.inputs, rows, self.loaded.any_rows)
        return rows

    def name_answers(self, answers: list[Array]) -> Answers:
        return {field.name: np.asarray(one) for field, one in zip(self.outputs, answers, strict=True)}

    def check_classifies(self) -> None:
        names = {one.name for one in self.outputs}
        if not self.takes_examples or not names & {_CLASSES, _SCORES} or names - {_CLASSES, _SCORES}:
            raise RequestError(
                400, f"signature {self.name!r} does not classify: it needs the input {EXAMPLES!r}, serialized "
                f"examples, and the outputs {_CLASSES!r} or {_SCORES!r}; use predict",
            )  # fmt: skip

    def rank_classes(self, answers: Answers) -> list[Ranking]:
        classes, scores = answers.get(_CLASSES), answers.get(_SCORES)
        some = classes if classes is not None else scores
        shape = () if some is None else some.shape
        if len(shape) != 2 or (scores is not None and scores.shape != shape):
            raise RequestError(
                400, f"signature {self.name!r} gave no row of classes and scores for each example"
            )
        words = np.full(shape, b"", object) if classes is None else classes
        found = np.zeros(shape) if scores is None else scores
        return [
            [(_text(word), float(score)) for word, score in zip(*row, strict=True)]
            for row in zip(words, found, strict=True)
        ]

    def check_regresses(self) -> None:
        if not self.takes_examples or [one.name for one in self.outputs] != [_OUTPUTS]:
            raise RequestError(
                400, f"signature {self.name!r} does not regress: it needs the input {EXAMPLES!r}, serialized "
                f"examples, and the output {_OUTPUTS!r}; use predict",
            )  # fmt: skip

    def take_numbers(self, answers: Answers) -> Array:
        found = answers[_OUTPUTS]
        if found.ndim == 0 or found.size != len(found):
            raise RequestError(400, f"signature {self.name!r} did not give one number for each example")
        return found.reshape(-1)

    def definition(self) -> ProtoMessage:
        return self.loaded.definition


def _text(word: object) -> str:
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)
