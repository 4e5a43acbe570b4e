"""Combines several losses into one number to minimise, with fixed or automatic weights.

    losses={"mask": 1.0, "box": 0.5}                   fixed
    losses={"mask": "auto", "box": "auto"}             by uncertainty
    losses=stoker.Balance("gradients")                 all losses of the step, by their gradients' norms

By uncertainty (Kendall, Gal and Cipolla, 2018): each loss L has a trained number s, and exp(-s) * L + s is minimised.
By gradients: each loss is weighted so that its gradient's norm, averaged over steps, equals the mean of all norms.
GradNorm (Chen et al., 2018) strives for this with alpha = 0; here it is computed instead of learned. It costs one
backward pass per loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import keras
import tensorflow as tf

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Tensor, Variable
from stoker.train.update.options import require_share

Method: TypeAlias = Literal["uncertainty", "gradients"]
METHODS: tuple[Method, ...] = ("uncertainty", "gradients")
# A fixed weight, or "auto".
Weight: TypeAlias = float | str


@dataclass(frozen=True)
class Balance:
    """Automatic weights for all losses of a step; `memory` is the decay of the average of the gradients' norms."""

    method: Method = "uncertainty"
    memory: float = 0.9

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ArgumentError(
                f"Balance({self.method!r}): the methods are {' and '.join(map(repr, METHODS))}."
            )
        require_share("Balance", memory=self.memory)


class Balancing:
    """The weights of the losses of a step."""

    def __init__(self, losses: Mapping[str, Weight] | Balance | None, names: Sequence[str]) -> None:
        if isinstance(losses, Mapping):
            _check(losses, names)
        given = losses if isinstance(losses, Mapping) else {}
        self._fixed = {name: float(weight) for name, weight in given.items() if weight != "auto"}
        self._balance = losses if isinstance(losses, Balance) else Balance()
        chosen = list(names) if isinstance(losses, Balance) else [n for n in names if given.get(n) == "auto"]
        by_uncertainty = self._balance.method == "uncertainty"
        with keras.name_scope("balance"):
            self._spreads = {n: keras.Variable(0.0, name=n) for n in chosen if by_uncertainty}
        self._norms = {n: tf.Variable(0.0, trainable=False) for n in chosen if not by_uncertainty}
        self._steps = tf.Variable(0, trainable=False, dtype=tf.int64)

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that the optimizer trains besides the model: the losses' log variances."""
        return list(self._spreads.values())

    @property
    def variables(self) -> dict[str, Variable]:
        spreads = {f"balance/{name}": spread.value for name, spread in self._spreads.items()}
        norms = {f"balance/norm/{name}": norm for name, norm in self._norms.items()}
        return {**spreads, **norms, **({"balance/steps": self._steps} if norms else {})}

    @property
    def by_gradients(self) -> bool:
        """Whether each loss needs its own gradient."""
        return bool(self._norms)

    def total(self, losses: Mapping[str, Tensor]) -> Tensor:
        """Return the loss to minimise. With weights by gradients, the losses are weighted as in the last step."""
        known = self._weights_of({name: tf.identity(norm) for name, norm in self._norms.items()})
        known = {name: tf.where(self._steps == 0, 1.0, weight) for name, weight in known.items()}
        terms = [self._term(name, loss, known.get(name, 1.0)) for name, loss in losses.items()]
        # Not `add_n`: Grappler would merge the terms' own sums into it, in an order that differs from trace to trace.
        return tf.reduce_sum(tf.stack(terms))

    def _term(self, name: str, loss: Tensor, weight: Tensor) -> Tensor:
        if name in self._spreads:
            spread = tf.convert_to_tensor(self._spreads[name])
            return tf.exp(-spread) * loss + spread
        return self._fixed.get(name, weight) * loss

    def weights(self, norms: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the weight of each loss, from the norms of the gradients at this step and before."""
        return self._weights_of({name: self._mean_norm(name, norm) for name, norm in norms.items()})

    def _weights_of(self, norms: Mapping[str, Tensor]) -> dict[str, Tensor]:
        if not norms:
            return {}
        common = tf.add_n(list(norms.values())) / len(norms)
        return {name: tf.math.divide_no_nan(common, norm) for name, norm in norms.items()}

    def remember(self, norms: Mapping[str, Tensor]) -> None:
        """Update the averages with the norms of a step, unless it overflowed."""
        finite = tf.reduce_all([tf.math.is_finite(norm) for norm in norms.values()])
        for name, norm in norms.items():
            kept = self._norms[name]
            kept.assign(tf.where(finite, self._mean_norm(name, norm), kept))
        self._steps.assign(tf.where(finite, self._steps + 1, self._steps))

    def _mean_norm(self, name: str, norm: Tensor) -> Tensor:
        memory = self._balance.memory
        return tf.where(self._steps == 0, norm, memory * self._norms[name] + (1 - memory) * norm)

    def describe_weights(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the automatic weights, for the logs."""
        by_uncertainty = {name: tf.exp(-tf.convert_to_tensor(s)) for name, s in self._spreads.items()}
        return {f"{name}_weight": weight for name, weight in {**by_uncertainty, **weights}.items()}

    def weight_names(self) -> list[str]:
        return [f"{name}_weight" for name in [*self._spreads, *self._norms]]


def _check(losses: Mapping[str, Weight], names: Sequence[str]) -> None:
    if set(losses) != set(names):
        raise ArgumentError(f"losses names {sorted(losses)}, but the step returns {sorted(names)}.")
    for name, weight in losses.items():
        if isinstance(weight, bool) or not (weight == "auto" or isinstance(weight, (int, float))):
            raise ArgumentError(f'losses[{name!r}] = {weight!r}: give a number or "auto".')
