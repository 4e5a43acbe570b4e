"""Traces each member's step. A member whose trace would surely equal another's reuses that one."""

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
from stoker.train.execution.keras_step import bind_weakly, make_train_step, returns_metrics
from stoker.train.execution.tracing import drop_trivial_products, lift_variables
from stoker.train.many.derived_steps import NumberedStep, derive_step, open_numbers
from stoker.train.many.flat_step import FlatStep, NotFlat, flatten_step
from stoker.train.many.members import Member
from stoker.train.variables import find_unsavable_random_ops, named_variables

RESET = "reset_metrics"
# This many members of a family are traced.
_TEACHERS = 2


@dataclass(frozen=True)
class MemberStep:
    """A member's step.

    Attributes:
        concrete: the traced step; None for a member that reuses another's.
        flat: the step's pure instructions; None if it has effects that they cannot express.
        structure: the structure that the step returns.
    """

    concrete: ConcreteFunction | None
    flat: FlatStep | None
    structure: Nest


class MemberTraces:
    """The traced steps of all members, each traced once."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        self._kept: dict[tuple[object, ...], MemberStep] = {}
        self._described: dict[int, TraceDescription | None] = {}
        self._twins: dict[TraceDescription, Member] = {}
        # Members whose descriptions differ only in numbers: two of them are traced, and show the steps of the rest.
        self._families: dict[str, list[Member]] = {}
        self._built: set[int] = set()
        self.variables: dict[int, dict[str, Variable]] = {}

    def step(
        self, member: Member, kind: str, spec: Nest, *, compiled_update: bool = False, fused: bool = False
    ) -> MemberStep:
        """Return the step of this kind ("train_step", "test_step" or `RESET`) for batches like `spec`."""
        key = (member.number, kind, repr(spec), compiled_update, fused)
        found = self._kept.get(key)
        if found is None:
            if not (compiled_update or fused):
                found = self._take_over(member, kind, spec)
            found = found or self._trace(member, kind, spec, compiled_update, fused)
            self._kept[key] = found
        return found

    def _take_over(self, member: Member, kind: str, spec: Nest) -> MemberStep | None:
        """Return the step from another member's, or derived from two others'; None if this member must be traced."""
        about = self._describe(member)
        if about is None:
            return None
        twin = self._twins.setdefault(about, member)
        if twin is not member:
            step = self.step(twin, kind, spec)
            self._build(member, spec)
            return MemberStep(None, step.flat, step.structure) if step.flat is not None else None
        family = self._families.setdefault(about.family, [])
        if member not in family and len(family) < _TEACHERS:
            family.append(member)
        if member in family:
            return None
        shown = [self.step(one, kind, spec) for one in family]
        numbered = [
            NumberedStep(one.flat, of.numbers)
            for one, of in zip(shown, map(self._describe, family), strict=True)
            if one.flat is not None and of is not None
        ]
        if len(numbered) < _TEACHERS:
            return None
        flat = derive_step(numbered[0], numbered[1], about.numbers)
        if flat is None:
            return None
        self._build(member, spec)
        return MemberStep(None, flat, shown[0].structure)

    def concrete(self, member: Member, kind: str, spec: Nest, **how: bool) -> ConcreteFunction:
        """Return the traced function of a member that runs alone."""
        step = self.step(member, kind, spec, **how)
        if step.concrete is None:
            step = self._trace(member, kind, spec, False, False)
            self._kept[(member.number, kind, repr(spec), False, False)] = step
        return step.concrete

    def name_variables(self, member: Member) -> dict[str, Variable]:
        """Return all variables of a member, by names that are the same for all members."""
        if member.number not in self.variables:
            self.variables[member.number] = named_variables(member.model)
        return self.variables[member.number]

    def _describe(self, member: Member) -> TraceDescription | None:
        """Describe what decides the member's trace, as of the first call."""
        if member.number not in self._described:
            self._described[member.number] = describe_trace(member.model)
        return self._described[member.number]

    def _build(self, member: Member, spec: Nest) -> None:
        """Make the variables of a member that is not traced."""
        if member.number not in self._built:
            self._built.add(member.number)
            keras_training.build(member.model, spec)

    def _trace(self, member: Member, kind: str, spec: Nest, compiled_update: bool, fused: bool) -> MemberStep:
        model = member.model
        trains = kind == "train_step"
        function = (
            make_train_step(model, "update" if compiled_update else "none", fused)
            if trains
            else bind_weakly(model, kind)
        )
        compiled = tf.function(drop_trivial_products(lift_variables(function)), autograph=False)
        silence_retracing_warning(compiled)
        arguments = () if kind == RESET else (spec,)
        concrete = compiled.get_concrete_function(*arguments)
        hidden = find_unsavable_random_ops(concrete.graph)
        if hidden:
            raise ArgumentError(
                f"configs[{member.number}]: the step uses {hidden[0]}, whose random state TensorFlow keeps out of "
                "reach: use keras.random with a SeedGenerator, or tf.random.stateless_*"
            )
        generator = self.name_variables(member)["keras.random"].handle
        if any(outer is generator for outer, _ in concrete.graph.captures):
            raise ArgumentError(
                f"configs[{member.number}]: a layer draws random numbers without a seed generator of its own, and all "
                "members would draw from one: give it a keras.random.SeedGenerator"
            )
        names = {
            id(one.handle): name
            for name, one in self.name_variables(member).items()
            if hasattr(one, "handle")
        }
        try:
            flat = flatten_step(concrete, names)
        except NotFlat:
            flat = None
        return MemberStep(concrete, flat, concrete.structured_outputs)


@dataclass(frozen=True)
class TraceDescription:
    """The facts that decide a trace.

    Attributes:
        family: everything but the numbers, as text.
        numbers: the numbers that a trace has as constants, in order.
    """

    family: str
    numbers: tuple[float, ...]


def describe_trace(model: Model) -> TraceDescription | None:
    """Describe what decides the trace of a model's steps; None if its config does not show that.

    Seeds, initial values and a plain learning rate are in variables, so they are left out. Layers are numbered instead
    of named: their names show in nothing that a model with one output returns.
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
        _leave_out(_renumber(made, numbers), _belongs_to_layer),
        _leave_out(_renumber(compiled, numbers), _is_rate),
    ]
    rest, found = open_numbers(essence)
    return TraceDescription(json.dumps([rest, [one.trainable for one in layers]], default=repr), found)


def _is_keras(config: object) -> bool:
    """Return whether everything that a config describes is Keras' own."""
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


def _belongs_to_layer(name: str, _: object) -> bool:
    return name == "seed" or name.endswith("_initializer")


def _is_rate(name: str, value: object) -> bool:
    return name == "learning_rate" and isinstance(value, int | float)
