"""Whether a function traced from a model still says what the model says.

A traced function reads weights through their variables, so new values need nothing. Everything else it took from
Python while tracing: which layers there are, their dtype policies, activations, rates and other attributes. A
`PythonSide` holds those by identity, and comparing two costs a microsecond or so a layer.
"""

from __future__ import annotations

from operator import is_

from stoker.tf_internals.keras_layers import layers_of
from stoker.tf_internals.keras_training import BOOKKEEPING, Trainer
from stoker.tf_internals.types import Model

# Where a model has what was traced of it.
ATTRIBUTE = "_stoker_compiled"
_BOOKKEEPING = BOOKKEEPING | {ATTRIBUTE}
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class PythonSide:
    """The Python side of a model at one moment: its layers, and the attributes of each."""

    __slots__ = ("_values",)

    def __init__(self, model: Model) -> None:
        self._values = _values(model)

    def holds(self, model: Model) -> bool:
        """Whether the model, apart from the values of its weights, is still as it was."""
        then, now = self._values, _values(model)
        if len(then) != len(now):
            return False
        return all(map(is_, then, now)) or all(map(_same, then, now))


def _values(model: Model) -> list[object]:
    values: list[object] = []
    for layer in layers_of(model):
        values.append(layer)
        attributes = layer.__dict__
        if isinstance(layer, Trainer):
            values += [value for name, value in attributes.items() if name not in _BOOKKEEPING]
        else:
            values += attributes.values()
    return values


def _same(then: object, now: object) -> bool:
    """The same object, or a plain value set again to what it was."""
    return then is now or (type(then) is type(now) and isinstance(now, _PLAIN) and bool(then == now))
