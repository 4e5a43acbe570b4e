"""A flat step computed for all members of a group at once: by a rule, or once for each member."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from stoker.tf_internals.graphs import make_op
from stoker.tf_internals.types import Array, Nest, Tensor
from stoker.train.many.flat_step import FlatStep, Instruction, has_same_bits
from stoker.train.many.member_values import MemberValue
from stoker.train.many.rules import RULES

_FUSED = ("Elu", "LeakyRelu", "Sigmoid", "Tanh")
# Ops whose results depend only on shapes.
_OF_SHAPES = ("Shape", "Size", "Rank")


class StackedStep:
    """One step of every member of a group. Call it while a graph is traced."""

    def __init__(self, flats: Sequence[FlatStep]) -> None:
        """The flat steps of the members differ at most in the values of constants."""
        self.flat = flats[0]
        self.count = len(flats)
        self._constants: dict[int, list[Array]] = {
            one.outputs[0]: [_value_of(flat.instructions[place]) for flat in flats]
            for place, one in enumerate(self.flat.instructions)
            if one.kind == "Const"
        }

    def run(
        self, batch: Nest, variables: Mapping[str, MemberValue]
    ) -> tuple[list[MemberValue], dict[str, MemberValue]]:
        """Return the step's flat outputs, and the new values of its variables.

        Args:
            batch: the batch, as the step takes it.
            variables: the values of the variables that the step reads, by name.
        """
        flat, count = self.flat, self.count
        tensors = [one for one in tf.nest.flatten(batch) if one is not None]
        known = {
            number: MemberValue(count, shared=one) for number, one in zip(flat.batch, tensors, strict=True)
        }
        known |= {number: variables[name] for name, number in flat.reads.items() if name in variables}
        fused = self._find_fused()
        computed: dict[tuple[object, ...], list[MemberValue]] = {}
        for instruction in self._keep_needed():
            if instruction.kind == "Const":
                known[instruction.outputs[0]] = self._constant(instruction)
                continue
            inputs = [known[number] for number in instruction.inputs]
            # The parts of an update often ask for the same value: for every variable, the current rate.
            key = (instruction.kind, instruction.key[1], tuple(id(one) for one in inputs))
            if key not in computed:
                computed[key] = compute(instruction, inputs, count, apart=instruction.outputs[0] in fused)
            known |= dict(zip(instruction.outputs, computed[key], strict=True))
        updated = {name: known[number] for name, number in flat.updates.items()}
        return [known[number] for number in flat.outputs], updated

    def find_differing(self, shared: Iterable[str]) -> set[str]:
        """Return the variables that are the same for all members before this step but differ after it."""
        same = set(shared)
        while True:
            values = {self.flat.reads[name] for name in same if name in self.flat.reads} | set(
                self.flat.batch
            )
            for one in self.flat.instructions:
                if one.kind == "Const":
                    values |= {one.outputs[0]} if self._is_same_constant(one) else set()
                elif one.kind in _OF_SHAPES or values.issuperset(one.inputs):
                    values.update(one.outputs)
            lost = {name for name in same if self.flat.updates.get(name, -1) not in {-1, *values}}
            if not lost:
                return set(shared) - same
            same -= lost

    def _find_fused(self) -> set[int]:
        """Return the ops that TensorFlow fuses with the product before them into a kernel that rounds differently."""
        biased = {one.outputs[0] for one in self.flat.instructions if one.kind == "BiasAdd"}
        found = set()
        for one in self.flat.instructions:
            if one.kind in _FUSED and one.inputs[0] in biased:
                found |= {one.inputs[0], one.outputs[0]}
        return found

    def _is_same_constant(self, instruction: Instruction) -> bool:
        values = self._constants[instruction.outputs[0]]
        return all(one is values[0] or has_same_bits(one, values[0]) for one in values)

    def _keep_needed(self) -> list[Instruction]:
        """Return the instructions on which something depends."""
        wanted = {*self.flat.outputs, *self.flat.updates.values()}
        kept = []
        for instruction in reversed(self.flat.instructions):
            if wanted.intersection(instruction.outputs):
                wanted.update(instruction.inputs)
                kept.append(instruction)
        return kept[::-1]

    def _constant(self, instruction: Instruction) -> MemberValue:
        values, dtype = self._constants[instruction.outputs[0]], instruction.dtypes[0]
        if self._is_same_constant(instruction):
            return MemberValue(self.count, shared=tf.constant(values[0], dtype))
        return MemberValue(self.count, stacked=tf.constant(np.stack(values), dtype))


def _value_of(constant: Instruction) -> Array:
    assert constant.value is not None
    return constant.value


def compute(
    instruction: Instruction, inputs: Sequence[MemberValue], count: int, *, apart: bool = False
) -> list[MemberValue]:
    """Compute one op for all members; with `apart`, once for each member, whatever the op's rule."""
    if all(one.is_shared for one in inputs):
        made = _make(instruction, [one.shared for one in inputs])
        return [MemberValue(count, shared=one) for one in made]
    if instruction.kind in _OF_SHAPES:
        made = _make(instruction, [inputs[0].split()[0]])
        return [MemberValue(count, shared=one) for one in made]
    rule = None if apart else RULES.get(instruction.kind)
    stacked = None if rule is None else rule(instruction, inputs)
    if stacked is not None:
        return [MemberValue(count, stacked=one) for one in stacked]
    each = [_make(instruction, members) for members in zip(*(one.split() for one in inputs), strict=True)]
    return [MemberValue(count, separate=one) for one in zip(*each, strict=True)]


def _make(instruction: Instruction, inputs: Sequence[Tensor]) -> list[Tensor]:
    return make_op(instruction.kind, inputs, instruction.attributes, instruction.dtypes)
