"""Each member's step, traced. A member that is sure to give the trace of another one takes over the other's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals import keras_training
from stoker.tf_internals.functions import silence_retracing_warning
from stoker.tf_internals.keras_layers import layers_of
from stoker.tf_internals.types import ConcreteFunction, Model, Nest, Variable
from stoker.train.execution.keras_step import make_train_step, returns_metrics, weak_method
from stoker.train.execution.tracing import drop_trivial_products, lift_variables
from stoker.train.many.flat_step import FlatStep, NotFlat, flatten_step
from stoker.train.many.members import Member
from stoker.train.variables import named_variables, random_ops_out_of_reach

RESET = "reset_metrics"


@dataclass(frozen=True)
class MemberStep:
    """A member's step.

    Attributes:
        concrete: as it was traced; None for one that takes over another member's.
        flat: its pure instructions; None if it has effects that cannot be written so.
        structure: what it returns.
    """

    concrete: ConcreteFunction | None
    flat: FlatStep | None
    structure: Nest


class MemberTraces:
    """The traced steps of all members, each traced once."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        self._kept: dict[tuple[object, ...], MemberStep] = {}
        self._twins: dict[str, Member] = {}
        self._built: set[int] = set()
        self.variables: dict[int, dict[str, Variable]] = {}

    def step(
        self, member: Member, kind: str, spec: Nest, *, compiled_update: bool = False, fused: bool = False
    ) -> MemberStep:
        """The step of this kind ("train_step", "test_step" or `RESET`) for batches like `spec`."""
        key = (member.number, kind, repr(spec), compiled_update, fused)
        found = self._kept.get(key)
        if found is None:
            twin = self._find_twin(member, spec) if not (compiled_update or fused) else None
            if twin is not None:
                step = self.step(twin, kind, spec)
                found = MemberStep(None, step.flat, step.structure) if step.flat is not None else None
            found = found or self._trace(member, kind, spec, compiled_update, fused)
            self._kept[key] = found
        return found

    def concrete(self, member: Member, kind: str, spec: Nest, **how: bool) -> ConcreteFunction:
        """The traced function of a member that runs by itself."""
        step = self.step(member, kind, spec, **how)
        if step.concrete is None:
            step = self._trace(member, kind, spec, False, False)
            self._kept[(member.number, kind, repr(spec), False, False)] = step
        return step.concrete

    def named(self, member: Member) -> dict[str, Variable]:
        """All variables of a member, by names that are the same for all members."""
        if member.number not in self.variables:
            self.variables[member.number] = named_variables(member.model)
        return self.variables[member.number]

    def _find_twin(self, member: Member, spec: Nest) -> Member | None:
        """An earlier member whose trace is this one's, with this one's variables made; None if there is none."""
        text = describe_trace(member.model)
        if text is None:
            return None
        twin = self._twins.setdefault(text, member)
        if twin is member:
            return None
        if member.number not in self._built:
            self._built.add(member.number)
            keras_training.build(member.model, spec)
        return twin

    def _trace(self, member: Member, kind: str, spec: Nest, compiled_update: bool, fused: bool) -> MemberStep:
        model = member.model
        trains = kind == "train_step"
        function = make_train_step(model, compiled_update, fused) if trains else weak_method(model, kind)
        compiled = tf.function(drop_trivial_products(lift_variables(function)), autograph=False)
        silence_retracing_warning(compiled)
        arguments = () if kind == RESET else (spec,)
        concrete = compiled.get_concrete_function(*arguments)
        hidden = random_ops_out_of_reach(concrete.graph)
        if hidden:
            raise ArgumentError(
                f"configs[{member.number}]: the step uses {hidden[0]}, whose random state TensorFlow keeps out of "
                "reach: use keras.random with a SeedGenerator, or tf.random.stateless_*"
            )
        generator = self.named(member)["keras.random"].handle
        if any(outer is generator for outer, _ in concrete.graph.captures):
            raise ArgumentError(
                f"configs[{member.number}]: a layer draws random numbers without a seed generator of its own, and all "
                "members would draw from one: give it a keras.random.SeedGenerator"
            )
        names = {id(one.handle): name for name, one in self.named(member).items() if hasattr(one, "handle")}
        try:
            flat = flatten_step(concrete, names)
        except NotFlat:
            flat = None
        return MemberStep(concrete, flat, concrete.structured_outputs)


def describe_trace(model: Model) -> str | None:
    """What decides the trace of a model's steps, as text; None if that cannot be told from its config.

    Seeds, initial values and a plain learning rate are in variables, so they are left out. Layers are numbered instead
    of named: their names show in nothing that a model of one output returns.
    """
    known = type(model) is keras.Sequential or type(model).__name__ == "Functional"
    if not known or not model.built or not returns_metrics(model) or len(model.outputs) != 1:
        return None
    layers = layers_of(model)
    if not all(type(one).__module__.startswith("keras.") for one in layers):
        return None
    made, compiled = model.get_config(), model.get_compile_config()
    if compiled is None or not (_is_keras(compiled) and _is_keras(made)):
        return None
    numbers = {one.name: f"#{number}" for number, one in enumerate(layers)} | {
        model.optimizer.name: "#optimizer"
    }
    essence = [
        _leave_out(_renumber(made, numbers), _of_layers),
        _leave_out(_renumber(compiled, numbers), _of_rate),
    ]
    return json.dumps([essence, [one.trainable for one in layers]], default=repr)


def _is_keras(config: object) -> bool:
    """Whether all that a config describes is Keras' own."""
    if isinstance(config, dict):
        kind = config.get("class_name", "__keras_tensor__")
        if kind != "__keras_tensor__" and not str(config.get("module", "")).startswith("keras"):
            return False
        return all(_is_keras(one) for one in config.values())
    if isinstance(config, list | tuple):
        return all(_is_keras(one) for one in config)
    return config is None or isinstance(config, str | int | float)


def _renumber(config: Any, numbers: Mapping[str, str]) -> Any:
    if isinstance(config, dict):
        return {_renumber(name, numbers): _renumber(value, numbers) for name, value in config.items()}
    if isinstance(config, list | tuple):
        return [_renumber(one, numbers) for one in config]
    return numbers.get(config, config) if isinstance(config, str) else config


def _leave_out(config: Any, is_in_variables: Callable[[str, object], bool]) -> Any:
    if isinstance(config, dict):
        return {
            name: _leave_out(value, is_in_variables)
            for name, value in config.items()
            if not is_in_variables(name, value)
        }
    if isinstance(config, list | tuple):
        return [_leave_out(one, is_in_variables) for one in config]
    return config


def _of_layers(name: str, _: object) -> bool:
    return name == "seed" or name.endswith("_initializer")


def _of_rate(name: str, value: object) -> bool:
    return name == "learning_rate" and isinstance(value, int | float)
