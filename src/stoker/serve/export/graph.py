"""Trace the function of a bundle and save it: each weight once, and nothing that only training needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import keras
import tensorflow as tf

from stoker.errors import StokerError
from stoker.serve.bundle import LABEL, SCORES, SIGNATURE, BundleError
from stoker.serve.export.answers import Labels, labels_for, output_names
from stoker.serve.export.faults import blame_layer
from stoker.serve.export.intake import Intake
from stoker.serve.export.names import leaves_of
from stoker.serve.signature import Field, Signature, identifiers
from stoker.tf_internals.graphs import PYTHON_OPS, is_resource
from stoker.tf_internals.types import ConcreteFunction, ProtoMessage, Tensor, Variable


class Traced:
    """The bundle's function, traced, and its signature."""

    def __init__(
        self,
        model: keras.Model,
        intake: Intake,
        words: Sequence[object] | None,
        demanded: bool,
        scores_once: bool = False,
    ) -> None:
        self.model, self.intake = model, intake
        self.labels: Labels | None = None
        self._words, self._demanded, self._scores_once = words, demanded, scores_once
        self._keys: list[str] = []
        self.concrete = self._trace()
        outputs = self.concrete.structured_outputs
        fields = [
            Field(key, outputs[tensor].dtype.name, tuple(outputs[tensor].shape[1:]), tensor)
            for key, tensor in zip(self._keys, identifiers(self._keys), strict=True)
        ]
        self.signature = Signature(intake.fields, tuple(fields))

    def _trace(self) -> ConcreteFunction:
        fields = self.intake.fields

        def served(**tensors: Tensor) -> dict[str, Tensor]:
            return self._answers([tensors[field.tensor] for field in fields])

        specs = {one.tensor: tf.TensorSpec([None, *one.shape], one.dtype, name=one.tensor) for one in fields}
        try:
            concrete = tf.function(served, autograph=False).get_concrete_function(**specs)
        except StokerError:
            raise
        except Exception as error:
            # A user's layer may raise anything; the message must say which layer it was.
            raise BundleError(f"the model cannot be traced for export: {blame_layer(error)}") from error
        _demand_no_python(concrete)
        return concrete

    def _answers(self, tensors: list[Tensor]) -> dict[str, Tensor]:
        # This is what `predict` runs for a batch: the model with training=False.
        found = self.model.predict_step((self.intake.encode(tensors),))
        outputs = leaves_of(found)
        names = output_names(self.model, found)
        _check_rows(names, outputs)
        outputs = [tf.cast(one, tf.float32) if one.dtype == tf.bfloat16 else one for one in outputs]
        shapes = {name: tuple(one.shape[1:]) for name, one in zip(names, outputs, strict=True)}
        self.labels = labels_for(self.model, self._words, shapes, self._demanded)
        if self.labels is not None:
            label, scores = self.labels.tensors(outputs[0])
            own = (names, outputs) if not self.hides_own_output else ([], [])
            names, outputs = [*own[0], LABEL, SCORES], [*own[1], label, scores]
        self._keys = names
        return dict(zip(identifiers(names), outputs, strict=True))

    @property
    def hides_own_output(self) -> bool:
        """Whether the model's only output is the scores, and the bundle gives them just once."""
        return self._scores_once and self.labels is not None and self.labels.are_output

    def save(self, directory: Path) -> None:
        """Write the SavedModel."""
        module = tf.Module()
        # Save only what the function reads: no optimizer, no metrics, and no second path to any weight.
        variables = self._variables()
        keys = identifiers(str(one.name).partition(":")[0] for one in variables)
        module.weights = dict(zip(keys, variables, strict=True))
        module.resources = [one for one in self._descendants() if is_resource(one)]
        tf.saved_model.save(module, str(directory), signatures={SIGNATURE: self.concrete})

    def _variables(self) -> list[Variable]:
        return sorted(self.concrete.variables, key=lambda one: str(one.name))

    def _descendants(self) -> list[object]:
        found: dict[int, object] = {}
        for root in (self.model, *self.intake.in_front):
            found |= {id(one): one for one in tf.train.TrackableView(root).descendants()}
        return list(found.values())

    def weights(self) -> dict[str, int]:
        """Return the number of weights, and their size in bytes."""
        sizes = [int(one.shape.num_elements()) for one in self._variables()]
        width = [one.dtype.size for one in self._variables()]
        return {
            "count": sum(sizes),
            "bytes": sum(size * each for size, each in zip(sizes, width, strict=True)),
        }


def _check_rows(keys: list[str], outputs: list[Tensor]) -> None:
    for key, output in zip(keys, outputs, strict=True):
        if not isinstance(output, tf.Tensor):
            raise BundleError(
                f"output {key!r} is a {type(output).__name__}; only dense tensors can be served"
            )
        if output.shape.rank is None:
            raise BundleError(f"output {key!r} has no known shape, so its rows cannot be told apart")
        if output.shape.rank == 0 or output.shape[0] is not None:
            raise BundleError(
                f"output {key!r} has shape {output.shape}: its first dimension must be the number of rows, not fixed"
            )


def graph_nodes(concrete: ConcreteFunction) -> list[ProtoMessage]:
    """List all nodes of a function and of the functions it calls."""
    graph = concrete.graph.as_graph_def()
    return [*graph.node, *(node for function in graph.library.function for node in function.node_def)]


def _demand_no_python(concrete: ConcreteFunction) -> None:
    """Refuse a function that calls back into this process, as no other process could load it."""
    for node in graph_nodes(concrete):
        if node.op in PYTHON_OPS:
            raise BundleError(
                f"{node.name!r} runs Python (py_function or numpy_function), which no other process has: "
                "write it with TensorFlow's operations"
            )
