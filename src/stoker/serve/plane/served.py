"""One signature of a loaded model, with its queue: all that a protocol sees of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stoker.serve.batching import LoopQueue
from stoker.serve.bundle import SIGNATURE
from stoker.serve.plane.errors import RequestError
from stoker.serve.predictor import Predictor
from stoker.serve.rows import InputRows, as_asked, refuse_booleans
from stoker.serve.signature import Array, Field
from stoker.tf_internals.types import ProtoMessage

Answers = dict[str, Array]  # the outputs by name
Ranking = list[tuple[str, float]]  # labels with their scores, the best first
PREDICT = "tensorflow/serving/predict"
# The input that receives serialized examples.
EXAMPLES = "inputs"


@dataclass(frozen=True)
class ServedSignature(ABC):
    """One signature of a model that answers.

    Attributes:
        name: the name that requests use.
        inputs, outputs: the tensors that go in and come out.
        queue: where its rows wait.
    """

    name: str
    inputs: tuple[Field, ...]
    outputs: tuple[Field, ...]
    queue: LoopQueue

    @property
    def takes_examples(self) -> bool:
        """Whether it reads serialized examples itself, from its input `EXAMPLES`."""
        return False

    def read_rows(
        self,
        given: object,
        alone: str = "an input's first dimension must be the number of rows",
        *,
        may_hold_booleans: bool = True,
    ) -> InputRows:
        """Convert what a request gives.

        Args:
            given: rows or columns.
            alone: the message for a bare row.
            may_hold_booleans: False if it certainly holds neither true nor false, which saves the search for them.

        Raises:
            RowError: it does not fit.
        """
        if may_hold_booleans:
            refuse_booleans(self.inputs, given)
        return self.convert_rows(given, alone)

    @abstractmethod
    def convert_rows(self, given: object, alone: str) -> InputRows:
        """Convert rows whose booleans were checked; raise RowError if they do not fit."""

    @abstractmethod
    def name_answers(self, answers: list[Array]) -> Answers:
        """Return the outputs by name."""

    @abstractmethod
    def check_classifies(self) -> None:
        """Raise RequestError if the signature gives no labels."""

    @abstractmethod
    def rank_classes(self, answers: Answers) -> list[Ranking]:
        """Return the labels of each row with their scores."""

    @abstractmethod
    def check_regresses(self) -> None:
        """Raise RequestError if the signature does not give one number for each row."""

    @abstractmethod
    def take_numbers(self, answers: Answers) -> Array:
        """Return one number for each row."""

    @abstractmethod
    def definition(self) -> ProtoMessage:
        """Return TensorFlow's own description of the signature, a `SignatureDef`."""


@dataclass(frozen=True)
class BundleSignature(ServedSignature):
    """The signature of a bundle, whose predictor computes the answers."""

    predictor: Predictor
    model: str

    def convert_rows(self, given: object, alone: str) -> InputRows:
        return as_asked(self.inputs, given, alone)

    def name_answers(self, answers: list[Array]) -> Answers:
        return self.predictor.named(answers)

    def check_classifies(self) -> None:
        self._labels()

    def _labels(self) -> tuple[str, ...]:
        labels = self.predictor.bundle.labels
        if labels is None:
            raise RequestError(400, f"model {self.model!r} has no labels: use predict")
        return labels

    def rank_classes(self, answers: Answers) -> list[Ranking]:
        labels = self._labels()
        result = []
        for scores in answers["scores"]:
            order = np.argsort(-scores, kind="stable")
            result.append([(labels[place], float(scores[place])) for place in order])
        return result

    def check_regresses(self) -> None:
        self._number()

    def _number(self) -> Field:
        outputs = self.outputs
        if len(outputs) != 1 or outputs[0].shape not in ((), (1,)) or outputs[0].dtype == "string":
            raise RequestError(400, f"model {self.model!r} does not return one number per row: use predict")
        return outputs[0]

    def take_numbers(self, answers: Answers) -> Array:
        return answers[self._number().name].reshape(-1)

    @cached_property
    def _definition(self) -> ProtoMessage:
        import tensorflow as tf

        made = tf.compat.v1.saved_model.build_signature_def(method_name=PREDICT)
        for fields, infos in ((self.inputs, made.inputs), (self.outputs, made.outputs)):
            for field in fields:
                info = infos[field.name]
                info.name = f"{SIGNATURE}_{field.tensor}:0"
                info.dtype = tf.as_dtype(field.dtype).as_datatype_enum
                info.tensor_shape.CopyFrom(tf.TensorShape(field.sizes).as_proto())
        return made

    def definition(self) -> ProtoMessage:
        return self._definition
