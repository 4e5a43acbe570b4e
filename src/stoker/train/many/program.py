"""The members of a `fit_many` as one program: the loops of their steps, their course, and the state for checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.keras_training import to_numbers
from stoker.tf_internals.types import ConcreteFunction, Nest, Variable
from stoker.train.custom.keras_model import KerasCourse, KerasLoops
from stoker.train.execution.epoch_steps import steps_per_execution
from stoker.train.execution.feed import BatchFeed
from stoker.train.execution.keras_step import bind_weakly, returns_metrics
from stoker.train.execution.loop import CompiledLoop, Logs, Step
from stoker.train.execution.parts import Cut
from stoker.train.many.flat_step import FlatStep
from stoker.train.many.group import MemberGroup
from stoker.train.many.members import Member
from stoker.train.many.tracing import RESET, MemberTraces
from stoker.train.program import CheckpointedState, StepLoops, TrainingCourse, TrainingProgram
from stoker.train.workers.group import Group

EXACT = "without XLA each member has the bits of its own fit"


class ManyModel(keras.Model):
    """The model that the training run sees: it says when to stop, and whose optimizer counts the updates."""

    def __init__(self, members: Sequence[Member]) -> None:
        first = members[0].model
        super().__init__(name=f"{first.name}_members_{len(members)}")
        # Written past Keras' tracking of attributes: the members are not layers of this model.
        self.__dict__["optimizer"] = first.optimizer
        self.__dict__["steps_per_execution"] = steps_per_execution(first)
        self.__dict__["history"] = keras.callbacks.History()


def many_program(members: Sequence[Member]) -> TrainingProgram:
    """Return the program that trains all members."""
    loops = ManyLoops(members)
    return TrainingProgram(loops, ManyCourse(loops), ManyState(loops))


class ManyLoops(StepLoops):
    """Loops in which every member does its step. Members whose steps agree do it together, on one stack."""

    fuses = True

    def __init__(self, members: Sequence[Member]) -> None:
        super().__init__(ManyModel(members), Group())
        self.members = list(members)
        self.active = {one.number for one in members}
        self.traces = MemberTraces(members)
        self.groups: list[MemberGroup] = []
        # Members whose steps cannot be stacked, or agree with no other member's.
        self.apart: list[Member] = list(members)
        self._first = KerasLoops(members[0].model)
        self._reset: tuple[object, ConcreteFunction | None] = (None, None)

    def step(self, kind: str) -> Step:
        steps = {one.number: bind_weakly(one.model, kind) for one in self.members}
        return lambda batch: {str(number): step(batch) for number, step in steps.items()}

    def loop(
        self, kind: str, feed: BatchFeed, jit: str, *, fused: bool = False, cut: Cut | None = None
    ) -> CompiledLoop:
        return ManyLoop(self, kind, feed, jit, fused=fused)

    def parts_refusal(self) -> str | None:
        return "the models of fit_many train on whole batches"

    def jit_refusal(self) -> str | None:
        return None if self.jit_demanded() else EXACT

    def jit_demanded(self) -> bool:
        return self._first.jit_demanded()

    def update_refusal(self, steps: int, *, fused: bool) -> str | None:
        return self._first.update_refusal(steps, fused=fused)

    @property
    def version(self) -> tuple[object, ...]:
        """The version of the members' division into groups. When it changes, loops must be made again."""
        return (len(self.apart), *((id(one), one.version) for one in self.groups))

    def form_groups(self, spec: Nest, **how: bool) -> None:
        """Group the members whose steps agree, once the steps can be traced."""
        if self.groups or len(self.apart) < len(self.members) or not self.apart:
            return
        kinds: list[tuple[FlatStep, list[Member]]] = []
        alone = []
        for member in self.apart:
            flat = self.traces.step(member, "train_step", spec, **how).flat
            known = next(
                (one for first, one in kinds if flat is not None and not first.difference(flat)), None
            )
            if flat is None:
                alone.append(member)
            elif known is not None:
                known.append(member)
            else:
                kinds.append((flat, [member]))
        check_same_structure(self.members, self.traces)
        self.groups = [MemberGroup(one, self.traces.name_variables) for _, one in kinds if len(one) > 1]
        self.apart = alone + [one[0] for _, one in kinds if len(one) == 1]
        check_nothing_shared(self.apart, self.traces)

    def write_back(self) -> None:
        """Update the members' own variables with their current values."""
        for group in self.groups:
            group.write_back()

    def note_changed(self) -> None:
        """Note that the members' own variables may have changed."""
        for group in self.groups:
            group.note_changed()

    def retire(self, member: Member) -> None:
        """Stop training this member."""
        self.active.discard(member.number)
        self.apart = [one for one in self.apart if one is not member]
        for group in self.groups:
            if member.number in group.active:
                group.retire(member)
        self.groups = [one for one in self.groups if one.active]
        self.model.stop_training = not self.active

    def reset_metrics(self) -> None:
        """Reset all metrics to zero, in one compiled call."""
        for group in self.groups:
            # This comes first, since it may change which variables are shared and with that the version.
            group.ensure_stacked()
        steps = {
            one.number: self.traces.step(one, RESET, None) for group in self.groups for one in group.members
        }
        stacked = [group for group in self.groups if all(steps[one.number].flat for one in group.members)]
        key = (self.version, tuple(id(group) for group in stacked))
        if self._reset[0] != key:
            flats = [[steps[one.number].flat for one in group.members] for group in stacked]
            runs = [
                group.step([one for one in own if one is not None])
                for group, own in zip(stacked, flats, strict=True)
            ]
            function = tf.function(lambda: [run(()) for run in runs], autograph=False)
            # Making the stacks may have changed which variables are shared.
            key = (self.version, tuple(id(group) for group in stacked))
            self._reset = (key, function.get_concrete_function())
        for group in stacked:
            group.ensure_stacked()
        assert self._reset[1] is not None
        self._reset[1]()
        for group in stacked:
            group.note_run()
        for group in self.groups:
            if group not in stacked:
                group.write_back()
                for one in group.members:
                    one.model.reset_metrics()
                group.note_changed()
        for one in self.apart:
            one.model.reset_metrics()


class ManyLoop(CompiledLoop):
    """A compiled loop over the members that are trained now. It is made again when they change."""

    def __init__(self, loops: ManyLoops, kind: str, feed: BatchFeed, jit: str, *, fused: bool) -> None:
        self.feed = feed
        self.jit = jit
        self.eager = False
        self.step_seconds = None
        self._loops = loops
        self._kind = kind
        self._how = {"compiled_update": jit == "update", "fused": fused} if kind == "train_step" else {}
        self._version: tuple[object, ...] | None = None
        self._inner: CompiledLoop | None = None
        self._stacked: list[MemberGroup] = []
        self._unstacked: list[MemberGroup] = []

    def build(self) -> ConcreteFunction:
        return self._find_current_loop().build()

    @property
    def logs_are_open(self) -> bool:
        return self._find_current_loop().logs_are_open

    @property
    def ran(self) -> int:
        return 0 if self._inner is None else self._inner.ran

    @property
    def waited_s(self) -> float:
        return 0.0 if self._inner is None else self._inner.waited_s

    def run(self, first: int, count: int) -> Logs:
        """Run as a plain loop does; the logs are numbers under "<number of the member>/<name>"."""
        for group in self._loops.groups:
            group.ensure_stacked()
        inner = self._find_current_loop()
        for group in self._stacked:
            group.ensure_stacked()
        for group in self._unstacked:
            group.write_back()
        logs = inner.run(first, count)
        for group in self._stacked:
            group.note_run()
        for group in self._unstacked:
            group.note_changed()
        return self._name(logs) if inner.ran else {}

    def _find_current_loop(self) -> CompiledLoop:
        """Return the loop over the current members."""
        if self._kind == "train_step":
            self._loops.form_groups(self.feed.spec(), **self._how)
        if self._inner is None or self._version != self._loops.version:
            self._inner = self._make()
            self._version = self._loops.version
        self._inner.feed = self.feed
        return self._inner

    def _make(self) -> CompiledLoop:
        loops, spec = self._loops, self.feed.spec()
        self._stacked, self._unstacked = [], []
        steps: dict[str, Any] = {}
        for number, group in enumerate(loops.groups):
            traced = [loops.traces.step(one, self._kind, spec, **self._how) for one in group.members]
            flats = [one.flat for one in traced if one.flat is not None]
            if len(flats) == len(traced) and not any(flats[0].difference(one) for one in flats[1:]):
                self._stacked.append(group)
                steps[f"group {number}"] = group.step(flats)
            else:
                self._unstacked.append(group)
        alone = [*loops.apart, *(one for group in self._unstacked for one in group.members)]
        for one in alone:
            steps[str(one.number)] = loops.traces.concrete(one, self._kind, spec, **self._how)

        def step(batch: Nest) -> Logs:
            return {name: run(batch) for name, run in steps.items()}

        return CompiledLoop(step, self.feed, jit="none" if self.jit == "update" else self.jit)

    def _name(self, logs: Logs) -> Logs:
        """Return the logs of the active members, each under its number."""
        loops, spec = self._loops, self.feed.spec()
        found: dict[int, Nest] = {int(name): own for name, own in logs.items() if name.isdecimal()}
        for name, values in logs.items():
            if not name.startswith("group "):
                continue
            group = loops.groups[int(name.removeprefix("group "))]
            arrays = [one.numpy() for one in values]
            for place, member in enumerate(group.members):
                structure = loops.traces.step(member, self._kind, spec, **self._how).structure
                own = [one[place] if one.ndim else one for one in arrays]
                found[member.number] = tf.nest.pack_sequence_as(structure, own)
        named: Logs = {}
        for number in sorted(loops.active & set(found)):
            named |= {f"{number}/{name}": value for name, value in to_numbers(found[number]).items()}
        return named


class ManyCourse(TrainingCourse):
    """Resets and reads every member's metrics, and finishes its optimizer."""

    def __init__(self, loops: ManyLoops) -> None:
        super().__init__(loops.model)
        self._loops = loops

    def reset(self) -> None:
        self._loops.reset_metrics()

    def results(self, logs: Logs) -> Logs:
        own = [one for one in self._loops.members if not returns_metrics(one.model)]
        if not own:
            return logs
        self._loops.write_back()
        found = dict(logs)
        for member in own:
            if member.number not in self._loops.active:
                continue
            results = KerasCourse(member.model).results(select_member_logs(logs, member))
            found |= {f"{member.number}/{name}": value for name, value in to_numbers(results).items()}
        return found

    @contextmanager
    def validation_scope(self) -> Iterator[None]:
        self.reset()
        yield

    def finish(self) -> None:
        self._loops.write_back()
        for member in self._loops.members:
            if member.number in self._loops.active:
                KerasCourse(member.model).finish()
        self._loops.note_changed()


class ManyState(CheckpointedState):
    """The variables of all members, and which members have stopped."""

    def __init__(self, loops: ManyLoops) -> None:
        super().__init__(loops.model)
        self._loops = loops

    def variables(self, extra: Mapping[str, Variable]) -> Mapping[str, Variable]:
        found: dict[str, Variable] = {}
        seen: set[int] = set()
        for member in self._loops.members:
            for name, one in self._loops.traces.name_variables(member).items():
                if id(one) not in seen:
                    seen.add(id(one))
                    found[f"member {member.number}/{name}"] = one
        seen |= {id(one) for group in self._loops.groups for one in group.owned_variables()}
        return found | {f"extra/{name}": one for name, one in extra.items() if id(one) not in seen}

    def progress(self) -> dict[str, object]:
        self._loops.write_back()
        stopped = [one.number for one in self._loops.members if one.number not in self._loops.active]
        return {"stopped": stopped}

    def restore_progress(self, progress: Mapping[str, Any]) -> None:
        for number in progress["stopped"]:
            self._loops.retire(self._loops.members[number])

    def note_restored(self) -> None:
        self._loops.note_changed()


def select_member_logs(logs: Mapping[str, Any], member: Member) -> dict[str, Any]:
    """Return a member's part of the logs, under the names that its own `fit` would use."""
    found = {}
    for name, value in logs.items():
        validated = name.startswith("val_")
        number, _, rest = name.removeprefix("val_").partition("/")
        if number == str(member.number):
            found[f"val_{rest}" if validated else rest] = value
    return found


def check_same_structure(members: Sequence[Member], traces: MemberTraces) -> None:
    """Refuse members of different architectures, naming the first difference."""
    first = _describe_trained(members[0], traces)
    for member in members[1:]:
        own = _describe_trained(member, traces)
        for name in [*first, *own]:
            if first.get(name) != own.get(name):
                raise ArgumentError(
                    f"configs[{member.number}] makes a different architecture from configs[0]: {name} is "
                    f"{own.get(name, 'missing')}, not {first.get(name, 'missing')}; call fit_many "
                    "once for each architecture"
                )


def _describe_trained(member: Member, traces: MemberTraces) -> dict[str, str]:
    trained = {id(one.value) for one in member.model.trainable_variables}
    return {
        name: f"{one.dtype.name}{list(one.shape)}"
        for name, one in traces.name_variables(member).items()
        if id(one) in trained
    }


def check_nothing_shared(members: Sequence[Member], traces: MemberTraces) -> None:
    """Refuse members that run by themselves and change the same variable."""
    owners: dict[int, Member] = {}
    for member in members:
        for name, one in traces.name_variables(member).items():
            if name != "keras.random" and owners.setdefault(id(one), member) is not member:
                raise ArgumentError(
                    f"configs[{member.number}]: the model shares {name} with that of configs"
                    f"[{owners[id(one)].number}]: have make_model make new layers"
                )
