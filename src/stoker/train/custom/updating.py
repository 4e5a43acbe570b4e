"""The updates of one step, traced on a replica: gradients, the one sum over all replicas, and the writing."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import LogValue, Tensor
from stoker.train.custom.parts import TrainedPart, UpdateOptions, UpdateState
from stoker.train.execution.parts import PartSize, slopes_of
from stoker.train.update.clipping import make_dense
from stoker.train.update.means import scalar
from stoker.train.update.replicas import ReplicaMeans, Replicas, Weight
from stoker.train.update.watching import Trouble

Logs = Mapping[str, LogValue]


@dataclass(frozen=True)
class Waiting:
    """An update that waits for the sum over the replicas."""

    part: str
    gradients: list[Tensor]
    loss: Tensor


@dataclass
class Moment:
    """The facts known while one step is traced on one replica.

    Attributes:
        weight: how much the replica counts.
        compiled: whether XLA compiles the replica's part of the step.
        size: the size of the parts in which the replica takes its rows; None for all rows at once.
    """

    weight: Weight
    compiled: bool = False
    size: PartSize | None = None
    waiting: list[Waiting] = field(default_factory=list)
    # For each update made in the step: its part, its loss over all replicas, and its trouble.
    made: list[dict[str, tuple[Tensor, Tensor]]] = field(default_factory=list)


class Updating:
    """The methods that a step calls to change weights. While a step is only inspected, they change nothing."""

    updates_last: bool = False
    """Whether a step updates weights at its very end, so that replicas exchange everything in one collective."""

    def __init__(self, options: UpdateOptions, replicas: Replicas) -> None:
        self.options = options
        self.replicas = replicas
        self._update_state: UpdateState | None = None
        # Each replica is traced in a thread of its own, one step at a time.
        self._local = threading.local()

    @property
    def update_state(self) -> UpdateState:
        """The state apart from models and optimizers."""
        if self._update_state is None:
            raise ArgumentError("the trainer has not seen a batch yet: call fit, or build(batch).")
        return self._update_state

    def alone(self, compute: Callable[[], Any]) -> Any:
        """Run a replica's computation before the collective; XLA compiles it if the step is compiled."""
        if not (self._updating and self._moment.compiled):
            return compute()
        # Each traced replica needs its own function, because each has variables of its own in it.
        return tf.function(compute, autograph=False, jit_compile=True)()

    @property
    def _part_size(self) -> PartSize | None:
        """The size of the parts over which an update's gradients are added up; None if all rows are taken at once."""
        return self._moment.size if self._updating else None

    def gradients(self, tape: tf.GradientTape, loss: Tensor, part: str) -> list[Tensor]:
        """Return the gradients of a loss for a part's variables, multiplied by the loss scale if there is one."""
        if not self._updating:
            return []
        if loss.dtype == tf.float16:
            raise ArgumentError(
                "the loss is float16: cast it to float32 inside the tape, a scale would overflow it."
            )
        update = self._find_part(part).update
        # The loss scale is the slope at the loss. This equals scaling the loss and needs no place in the tape. The
        # replica's weight is part of the slope too: a layer that adds up over the replicas in the forward pass must
        # also do so with it.
        factors = [] if update.scaler is None else [tf.cast(update.scaler.scale, loss.dtype)]
        factors += [tf.cast(self._moment.weight.own, loss.dtype)] if self._weighs else []
        slope = math.prod(factors) if factors else None
        frozen = update.optimizing.frozen
        wanted = [one.value for one, out in zip(update.optimizing.variables, frozen, strict=True) if not out]
        slopes = iter(slopes_of(tape, loss, wanted, slope))
        return [None if out else next(slopes) for out in frozen]

    def apply(self, gradients: Sequence[Tensor], loss: Tensor, part: str) -> None:
        """Update a part's weights by the gradients from `gradients`, which you may have changed."""
        if not self._updating:
            return
        prepared = self._find_part(part).update.select(gradients)
        waiting = Waiting(part, prepared, scalar("loss", loss))
        if self._weighs:
            self._moment.waiting.append(waiting)
            return
        means = self.replicas.means([*prepared, waiting.loss], self._moment.weight)
        self._update(waiting, means.values, means.rows)

    def _update(self, waiting: Waiting, means: list[Tensor], rows: Tensor) -> None:
        """Write an update, given the means over all replicas of its gradients and, last, of its loss."""
        found, (*slopes, whole) = self._find_part(waiting.part), means
        scaler, watched = found.update.scaler, self.options.checks_losses
        trouble = found.watch.judge(whole) if watched else tf.constant(Trouble.NONE, tf.float32)
        if scaler is not None:
            # After an overflow the scale is lowered. Only at its lowest value is the loss itself to blame.
            overflow = (trouble == Trouble.NOT_FINITE) & scaler.may_shrink
            trouble = tf.where(overflow, tf.constant(Trouble.NONE, tf.float32), trouble)
        allowed = tf.logical_not(self.update_state.halt.on) & (trouble == Trouble.NONE)
        finite = found.update.apply(slopes, rows=rows, allowed=allowed)
        if watched and scaler is None:
            broken = tf.logical_not(finite) & (trouble == Trouble.NONE)
            trouble = tf.where(broken, tf.constant(Trouble.GRADIENT, tf.float32), trouble)
        self._moment.made.append({waiting.part: (whole, trouble)})

    @property
    def _weighs(self) -> bool:
        """Whether gradients are multiplied by their replica's weight, as in updates that wait for the step's end."""
        return self.updates_last and self.replicas.distributed

    def _together(
        self, waiting: Sequence[Waiting], values: list[Tensor], weight: Weight, more: Tensor
    ) -> ReplicaMeans:
        """Run the step's collective: gradients, losses of the updates, `values`, and flags of workers out of data."""
        gradients = [gradient for one in waiting for gradient in one.gradients]
        losses = [one.loss for one in waiting]
        out = [] if more is None else [tf.cast(tf.logical_not(more), tf.float32)]
        if not (gradients or losses or values or out) and weight.rows is not None:
            return ReplicaMeans([], [], weight.rows, [])
        return self.replicas.means([*losses, *values], weight, weighed=gradients, counts=out)

    def _minimize_balanced(self, tape: tf.GradientTape, losses: Logs, part: str) -> tuple[Tensor, Logs]:
        """Weight the losses by the norms of their gradients over all replicas, and update."""
        balancing, first = self.update_state.balancing, self.replicas.first
        update = self._find_part(part).update
        scaler, variables = update.scaler, update.optimizing.variables
        slopes = {name: self.gradients(tape, loss, part) for name, loss in losses.items()}
        norms = {}
        for name, listed in slopes.items():
            pairs = zip(listed, variables, strict=True)
            present = [tf.ensure_shape(make_dense(one), var.shape) for one, var in pairs if one is not None]
            known = {"weighed": present} if self._weighs else {}
            means = self.replicas.means([] if known else present, self._moment.weight, **known)
            whole = [*means.values, *means.weighed]
            norm = tf.linalg.global_norm(whole)
            norms[name] = norm if scaler is None else norm / scaler.scale
        weights = balancing.weights(norms)
        mixed = [_weigh(column, weights.values()) for column in zip(*slopes.values(), strict=True)]
        total = tf.add_n([weights[name] * loss for name, loss in losses.items()])
        self.apply(mixed, total, part)
        self.replicas.once(lambda all_: balancing.remember({n: first(v) for n, v in all_.items()}), norms)
        return total, weights

    @property
    def _updating(self) -> bool:
        """Whether updates are being traced; otherwise the step is only inspected."""
        return self._update_state is not None and getattr(self._local, "moment", None) is not None

    @property
    def _moment(self) -> Moment:
        moment: Moment = self._local.moment
        return moment

    def _find_part(self, name: str) -> TrainedPart:
        parts = self.update_state.parts
        if name not in parts:
            raise ArgumentError(f"there is no part {name!r}: the trainer has {', '.join(map(repr, parts))}.")
        return parts[name]


def _weigh(column: Sequence[Tensor], weights: Iterable[Tensor]) -> Tensor:
    terms = [make_dense(one) * weight for one, weight in zip(column, weights, strict=True) if one is not None]
    return tf.add_n(terms) if terms else None
