"""What a step's forward pass writes on its own account, such as BatchNorm's moving statistics, over all replicas.

Each replica moves its copy by the rows it saw. The mean of these moves over all rows is what all copies then hold, so
that workers stay equal bit for bit, and a mean moves as it would on one device with the whole batch. (A variance is
that within each replica's rows; `BatchNormalization(synchronized=True)` takes it over all of them, for more
collectives.)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import tensorflow as tf

from stoker.tf_internals.keras_layers import layers_of, own_state
from stoker.tf_internals.types import Model, Tensor, Variable
from stoker.train.update.replicas import Replicas


class Statistics:
    """Made before the forward pass, on a replica; knows then what it changed."""

    def __init__(self, models: Iterable[Model], replicas: Replicas) -> None:
        self._replicas = replicas
        self._variables = _own_state(models) if replicas.distributed else []
        self._before = [tf.identity(variable) for variable in self._variables]

    def changes(self) -> list[Tensor]:
        """By how much this replica's copies were moved."""
        # A difference, so that what was not touched stays exactly as it is.
        pairs = zip(self._variables, self._before, strict=True)
        return [tf.convert_to_tensor(variable) - before for variable, before in pairs]

    def write(self, changes: Sequence[Tensor]) -> None:
        """Give all copies the mean move over all replicas."""
        if not self._variables:
            return
        values = [before + change for before, change in zip(self._before, changes, strict=True)]

        def all_copies(values: Sequence[Tensor]) -> None:
            for variable, value in zip(self._variables, values, strict=True):
                self._replicas.each(variable, lambda copy, new: copy.assign(new), value)

        self._replicas.once(all_copies, values)


def _own_state(models: Iterable[Model]) -> list[Variable]:
    """Floating-point variables that layers made not to be trained; a frozen kernel is none."""
    found: dict[int, Tensor] = {}
    for model in models:
        for layer in layers_of(model):
            for variable in own_state(layer):
                inner = variable.value
                if inner.dtype.is_floating and isinstance(inner, tf.distribute.DistributedValues):
                    found[id(inner)] = inner
    return list(found.values())
