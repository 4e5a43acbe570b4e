"""Members whose steps agree: their variables on one stack, and their steps as one.

Between calls of the compiled loop, the current values are either on the stack or in the members' own variables.
`ensure_stacked` and `write_back` bring them to where they are needed. Variables that are, and stay, the same for all
members (such as the count of updates) are kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Array, Nest, Tensor, Variable
from stoker.train.many.flat_step import FlatStep
from stoker.train.many.member_values import MemberValue
from stoker.train.many.members import Member
from stoker.train.many.stacked_step import StackedStep

# Up to this many elements, a variable is checked for whether all members have the same value.
_SMALL = 16


class MemberGroup:
    """Members with their variables on one stack."""

    def __init__(self, members: Sequence[Member], named: Callable[[Member], Mapping[str, Variable]]) -> None:
        self.members = list(members)
        self._named = named
        self._stacks: dict[str, Variable] = {}
        self._shared: set[str] = set()
        self._never_shared: set[str] = set()
        # The members that are still trained; the others' rows of the stack mean nothing.
        self.active = {one.number for one in members}
        self.version = 0
        """Grows when loops over this group must be traced again."""
        self._members_newer = True
        self._stack_newer = False

    def step(self, flats: Sequence[FlatStep]) -> Callable[[Nest], list[Tensor]]:
        """Return one step of all members on the stack, to be traced. It returns stacks, or shared values.

        Args:
            flats: the flat step of each member, in their order.
        """
        stacked = StackedStep(flats)
        self._prepare(stacked)

        def run(batch: Nest) -> list[Tensor]:
            values = {name: self._read(name) for name in stacked.flat.reads}
            returned, updated = stacked.run(batch, values)
            for name, value in updated.items():
                self._stacks[name].assign(value.shared if name in self._shared else _broadcast(value))
            return [one.shared if one.is_shared else one.stack() for one in returned]

        return run

    def _prepare(self, stacked: StackedStep) -> None:
        """Make the stacks of the variables that the step uses."""
        names = {*stacked.flat.reads, *stacked.flat.updates}
        for name in names - set(self._stacks):
            if name in stacked.flat.updates:
                self._check_apart(name)
            self._make_stack(name)
        differing = stacked.find_differing(self._shared)
        if differing:
            self._unshare(differing)

    def _check_apart(self, name: str) -> None:
        handles = [id(self._variable(one, name)) for one in self.members]
        if len(set(handles)) < len(handles):
            raise ArgumentError(
                f"two members share the variable {name!r}, which training changes: have make_model make new layers, "
                "and give layers that draw random numbers a seed"
            )

    def _variable(self, member: Member, name: str) -> Variable:
        return self._named(member)[name]

    def _make_stack(self, name: str) -> None:
        self.write_back()
        values = [self._variable(one, name).numpy() for one in self.members]
        first = values[0]
        if first.size <= _SMALL and name not in self._never_shared and _are_same(self._select_active(values)):
            self._shared.add(name)
            self._stacks[name] = tf.Variable(first, trainable=False)
        else:
            self._shared.discard(name)
            self._stacks[name] = tf.Variable(np.stack(values), trainable=False)
        self._members_newer = True

    def _select_active(self, values: Sequence[Array]) -> list[Array]:
        return [one for one, member in zip(values, self.members, strict=True) if member.number in self.active]

    def _unshare(self, names: Iterable[str]) -> None:
        """Stop sharing these variables: they are not the same for all members, or will not stay so."""
        self.version += 1
        self._never_shared |= set(names)
        for name in names:
            self._make_stack(name)

    def _read(self, name: str) -> MemberValue:
        value = self._stacks[name].read_value()
        count = len(self.members)
        return MemberValue(count, shared=value) if name in self._shared else MemberValue(count, stacked=value)

    def ensure_stacked(self) -> None:
        """Copy the members' variables to the stack, if they are newer."""
        if not self._members_newer:
            return
        differing = []
        for name, stack in self._stacks.items():
            values = [self._variable(one, name).numpy() for one in self.members]
            if name not in self._shared:
                stack.assign(np.stack(values))
                continue
            stack.assign(self._select_active(values)[0])
            if not _are_same(self._select_active(values)):
                differing.append(name)
        if differing:
            self._unshare(differing)
        self._members_newer = self._stack_newer = False
        if differing:
            self._members_newer = True
            self.ensure_stacked()

    def note_run(self) -> None:
        """Note that the compiled loop has changed the stack."""
        self._stack_newer = True

    def note_changed(self) -> None:
        """Note that the members' own variables have changed, or may have."""
        self._members_newer = True

    def write_back(self) -> None:
        """Copy the stack to the variables of the active members, if it is newer."""
        if not self._stack_newer:
            return
        self._stack_newer = False
        for name, stack in self._stacks.items():
            values = stack.numpy()
            for place, member in enumerate(self.members):
                if member.number in self.active:
                    own = values if name in self._shared else values[place]
                    self._variable(member, name).assign(own)

    def retire(self, member: Member) -> None:
        """Stop training this member; its variables keep their values."""
        self.write_back()
        self.active.discard(member.number)
        # Unused rows cost time, but stacking anew costs a trace.
        if self.active and len(self.active) <= len(self.members) // 2:
            self.members = [one for one in self.members if one.number in self.active]
            self.version += 1
            for name in list(self._stacks):
                self._make_stack(name)

    def owned_variables(self) -> list[Variable]:
        return list(self._stacks.values())


def _broadcast(value: MemberValue) -> Tensor:
    return tf.stack(value.split()) if value.is_shared else value.stack()


def _are_same(values: Sequence[Array]) -> bool:
    return all(one.tobytes() == values[0].tobytes() for one in values)
