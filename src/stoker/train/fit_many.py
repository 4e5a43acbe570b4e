"""`stoker.fit_many`: many configurations of one architecture, trained in one compiled loop over the same batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from stoker.errors import ArgumentError
from stoker.tf_internals.types import ClassWeight, Data, Model, Verbose
from stoker.train.checkpoint.options import CheckpointLike
from stoker.train.execution import fused_parts, fused_update
from stoker.train.many.callbacks import ManyCallbacks, MemberCallbacks, read_callbacks
from stoker.train.many.members import Config, Member, make_members
from stoker.train.many.program import ManyLoops, many_program
from stoker.train.planning.plan import Plan, PlanLike, parse
from stoker.train.preparing import prepare_run
from stoker.train.request import FitRequest
from stoker.train.tracebacks import filter_errors
from stoker.train.workers.group import Group


@dataclass(frozen=True)
class ManyResult:
    """The result of `stoker.fit_many`.

    Attributes:
        members: the members, one for each config, in their order.
        monitor: the name of the members' `score`.
        mode: whether the lowest ("min") or the highest ("max") score is best.
        plan: how the training ran.
    """

    members: tuple[Member, ...]
    monitor: str
    mode: str
    plan: Plan

    @property
    def best(self) -> Member:
        """The member with the best score; the first one in a tie. NaN never wins."""
        sign = 1 if self.mode == "min" else -1

        def rank(one: Member) -> float:
            known = one.score is not None and not math.isnan(one.score)
            return sign * one.score if known and one.score is not None else math.inf

        return min(self.members, key=rank)

    @property
    def models(self) -> list[Model]:
        """The trained models, in the order of the configs."""
        return [one.model for one in self.members]

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self.members)

    def __getitem__(self, number: int) -> Member:
        return self.members[number]


@filter_errors
def fit_many(
    make_model: Callable[..., Model],
    configs: Sequence[Config],
    x: Data = None,
    y: Data = None,
    batch_size: int | None = None,
    epochs: int = 1,
    verbose: Verbose = "auto",
    callbacks: MemberCallbacks = None,
    validation_split: float = 0.0,
    validation_data: Data = None,
    shuffle: bool | str = True,
    class_weight: ClassWeight = None,
    sample_weight: Data = None,
    initial_epoch: int = 0,
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    validation_freq: int | Sequence[int] = 1,
    *,
    monitor: str | None = None,
    mode: str = "auto",
    plan: PlanLike = None,
    checkpoint: CheckpointLike = None,
) -> ManyResult:
    """Train many configurations of one architecture at once: each as its own `stoker.fit` would train it.

    Args:
        make_model: called as `make_model(**config)`; returns a compiled Keras model.
        configs: the arguments of each member's model. A `seed` among them is set with `keras.utils.set_random_seed`
            before the model is made, and passed on if `make_model` takes it. The other positional arguments are those
            of `model.fit`; all members train on the same batches.
        callbacks: a list, of whose callbacks each member gets copies, or a function that returns a list for a config.
        monitor: the value by which members are compared; "val_loss" with validation data, else "loss".
        mode: "min" or "max"; "auto" is "max" for names such as accuracy and AUC, else "min".
        plan: as for `stoker.fit`. XLA is used only if it is asked for, since it would round differently.
        checkpoint: a directory, or a `stoker.Checkpoint`; after a crash, the same call continues where it was.

    Returns:
        The members with their models and histories, and the best of them.

    Raises:
        ArgumentError: an argument is invalid, or the models cannot be trained together; it is a `ValueError`.
    """
    arguments = dict(locals())
    if mode not in ("auto", "min", "max"):
        raise ArgumentError(f"mode={mode!r} is not one of 'auto', 'min', 'max'")
    members = make_members(make_model, configs)
    program = many_program(members)
    assert isinstance(program.loops, ManyLoops)
    pinned = _choose_fusing(parse(plan), members[0].model)
    listed = ManyCallbacks(program.loops, read_callbacks(callbacks, members), verbose, epochs)
    known = {**arguments, "callbacks": listed, "plan": pinned}
    request = FitRequest.from_call({**known, "divide": "share", "data_service": None, "scale_rate": False})
    run = prepare_run(request, Group(), lambda _: program)
    history = run.train()
    for member in members:
        member.history.plan = replace(history.plan)
        member.history.run = history.run
    validated = bool(validation_split) or validation_data is not None
    name = monitor or ("val_loss" if validated else "loss")
    for member in members:
        member.score = _score(member, name, listed)
    return ManyResult(tuple(members), name, choose_mode(mode, name), history.plan)


def _choose_fusing(plan: Plan, model: Model) -> Plan:
    """Choose the fusing as `stoker.fit` does for one member."""
    if plan.fused is not None:
        return plan
    found = fused_parts.find_parts(model) if fused_update.on_processors() else []
    return plan.because(*found, fused=bool(found))


def _score(member: Member, monitor: str, callbacks: ManyCallbacks) -> float | None:
    """Return the monitored value for the model's present weights: those of the last epoch, or of a restored one."""
    values = member.history.history.get(monitor)
    if values is None and member.history.epoch:
        known = ", ".join(sorted(member.history.history))
        raise ArgumentError(f"monitor={monitor!r} is not in the history, which has {known}")
    if not values:
        return None
    epoch = callbacks.restored_epoch(member)
    place = len(values) - 1 if epoch is None else min(epoch - member.history.epoch[0], len(values) - 1)
    return float(values[place])


def choose_mode(mode: str, monitor: str) -> str:
    """Return whether the largest or the smallest value is best; "auto" decides by the value's name."""
    if mode != "auto":
        return mode
    rising = ("acc", "auc", "precision", "recall", "f1", "r2", "iou")
    return "max" if any(word in monitor.lower() for word in rising) else "min"
