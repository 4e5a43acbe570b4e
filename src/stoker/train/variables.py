"""Everything that a training step changes, by names that are the same in every process that builds the same model.

Keras numbers its names by what was built before (`dense_3` here, `dense_7` there), so the names here come from
positions: `model/2-Dense/0.kernel` is the first variable of the third layer, whatever Keras calls it.

Included: weights, state such as BatchNorm's, seed generators, metrics, optimizers with their slots, learning rate, loss
scale and averages, plain `tf.Variable` and `tf.random.Generator` attributes of layers, and the generator behind
`keras.random` calls without a seed. Not included, because TensorFlow gives no access: lookup tables (the program fills
them again) and the counters of stateful `tf.random.*` ops in a step (use `keras.random` with a seed generator).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping

import keras
import tensorflow as tf

from stoker.errors import CheckpointError
from stoker.tf_internals import keras_layers
from stoker.tf_internals.graphs import called_graphs
from stoker.tf_internals.types import Graph, Layer, Model, Optimizer, SeedGenerator, Variable
from stoker.train.workers.copies import Mirrored, ReplicaPart, copies_of, has_parts, part_name
from stoker.train.workers.group import group_of


def named_variables(model: Model, *, extra: Mapping[str, Variable] | None = None) -> dict[str, Variable]:
    """Return the state of a built model, its optimizers and its metrics.

    An optimizer that is not built yet is built on the model's trainable variables, as Keras does at the first step.

    Raises:
        CheckpointError: the model has no weights yet.
    """
    if not model.built:
        raise CheckpointError(
            f"the model {model.name!r} has no weights yet: build it or call it on a batch before it is saved"
        )
    found = _FoundVariables(group_of(model.distribute_strategy).first_replica)
    _add_layer(found, "model", model)
    # A model that was never compiled does not have this attribute.
    optimizer = vars(model).get("optimizer")
    if isinstance(optimizer, keras.optimizers.Optimizer):
        if not optimizer.built:
            with model.distribute_strategy.scope():
                optimizer.build(model.trainable_variables)
        _add_optimizer(found, "optimizer", optimizer)
    found.add_all("metrics", model.metrics_variables)
    for layer, name in found.layers:
        _add_attributes(found, name, layer)
    found.add_all("model/rest", model.variables)
    found.add("keras.random", _global_seed_generator().state)
    for name, variable in (extra or {}).items():
        found.add(f"extra/{name}", variable)
    return found.variables


class _FoundVariables:
    """Variables under unique names, each only once."""

    def __init__(self, first_replica: int = 0) -> None:
        self.variables: dict[str, Variable] = {}
        self._first_replica = first_replica
        self.layers: list[tuple[Layer, str]] = []
        self._names: set[str] = set()
        self._seen: set[int] = set()

    def is_first_visit(self, thing: object) -> bool:
        if id(thing) in self._seen:
            return False
        self._seen.add(id(thing))
        return True

    def add(self, name: str, variable: Variable) -> None:
        # A Keras variable wraps a TensorFlow variable, which under a strategy is a copy per device.
        inner = variable.value if isinstance(variable, keras.Variable) else variable
        if not self.is_first_visit(inner):
            return
        while name in self._names:
            name += "'"
        self._names.add(name)
        copies = copies_of(inner)
        # A traced step knows the copies, but not the variable they are copies of.
        self._seen |= {id(copy) for copy in copies}
        if has_parts(inner):
            numbered = enumerate(copies, self._first_replica)
            self.variables |= {part_name(name, number): ReplicaPart(copy) for number, copy in numbered}
        else:
            self.variables[name] = inner if inner is copies[0] else Mirrored(copies)

    def add_all(self, prefix: str, variables: Iterable[Variable]) -> None:
        for number, variable in enumerate(variables):
            self.add(f"{prefix}/{number}.{_strip_number(variable)}", variable)


def _strip_number(variable: Variable) -> str:
    return re.sub(r"_\d+$", "", variable.name.split(":")[0])


def _add_layer(found: _FoundVariables, name: str, layer: Layer) -> None:
    if not found.is_first_visit(layer):
        return
    found.layers.append((layer, name))
    # Not `layer.variables`, which is flat and does not tell where a variable belongs.
    found.add_all(name, keras_layers.own_variables(layer))
    for number, generator in enumerate(keras_layers.seed_generators(layer)):
        found.add(f"{name}/seed{number}", generator.state)
    for number, inner in enumerate(keras_layers.inner_layers(layer)):
        _add_layer(found, f"{name}/{number}-{type(inner).__name__}", inner)


def _add_optimizer(found: _FoundVariables, name: str, optimizer: Optimizer) -> None:
    # The names of slots contain the numbered names of layers, so only the position is stable.
    for number, variable in enumerate(optimizer.variables):
        found.add(f"{name}-{type(optimizer).__name__}/{number}", variable)


def _add_attributes(found: _FoundVariables, name: str, layer: Layer) -> None:
    """Add what people store on their models: second optimizers, counters, generators, metrics."""
    for attribute, value in list(vars(layer).items()):
        if isinstance(value, list | tuple):
            inner = [(f"{name}/{attribute}.{number}", item) for number, item in enumerate(value)]
        elif isinstance(value, dict):
            inner = [(f"{name}/{attribute}.{key}", item) for key, item in value.items()]
        else:
            inner = [(f"{name}/{attribute}", value)]
        for path, item in inner:
            _add_object(found, path, item)


def _add_object(found: _FoundVariables, path: str, item: object) -> None:
    if isinstance(item, tf.Variable | keras.Variable):
        found.add(path, item)
    elif isinstance(item, tf.random.Generator | keras.random.SeedGenerator):
        found.add(path, item.state)
    elif isinstance(item, keras.optimizers.Optimizer):
        _add_optimizer(found, path, item)
    elif isinstance(item, keras.Metric):
        found.add_all(path, item.variables)


def _global_seed_generator() -> SeedGenerator:
    # Making it draws from Python's generator, but a run with checkpoints must see the same numbers as one without.
    before = random.getstate()
    generator = keras_layers.global_seed_generator()
    random.setstate(before)
    return generator


def find_unsavable_random_ops(graph: Graph) -> list[str]:
    """Return the stateful random ops in a traced function's graph.

    Their counters cannot be saved, so a resume differs.
    """
    graphs = [graph, *called_graphs(graph)]
    found = {
        operation.type
        for one in graphs
        for operation in one.get_operations()
        if operation.type in STATEFUL_RANDOM and operation.op_def.is_stateful
    }
    return sorted(found)


STATEFUL_RANDOM = frozenset(
    {
        "Multinomial",
        "ParameterizedTruncatedNormal",
        "RandomGamma",
        "RandomPoissonV2",
        "RandomShuffle",
        "RandomStandardNormal",
        "RandomUniform",
        "RandomUniformInt",
        "TruncatedNormal",
    }
)
