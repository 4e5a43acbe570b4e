"""The evaluated arguments of a call."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from stoker.doctor.check.source.values import Array, Py, Seq, Tensor, Value


@dataclass(eq=False)
class Arguments:
    """The evaluated arguments of one call, with their expressions."""

    positional: list[tuple[ast.expr, Value]] = field(default_factory=list)
    named: dict[str, tuple[ast.expr, Value]] = field(default_factory=dict)
    # Whether some arguments come from `*args` or `**kwargs`.
    open: bool = False

    @classmethod
    def at(cls, expression: ast.expr, *values: Value) -> Arguments:
        """Make arguments of values that are passed by position and all come from one expression."""
        return cls([(expression, value) for value in values])

    def pair(self, position: int, name: str) -> tuple[ast.expr, Value] | None:
        """Return the expression and the value passed at a position or by a keyword."""
        if name in self.named:
            return self.named[name]
        return self.positional[position] if position < len(self.positional) else None

    def get(self, position: int, name: str) -> Value | None:
        """Return the value passed at a position or by a keyword."""
        found = self.pair(position, name)
        return found and found[1]

    def expression(self, position: int, name: str) -> ast.expr | None:
        """Return the expression passed at a position or by a keyword."""
        found = self.pair(position, name)
        return found and found[0]

    def const(self, position: int, name: str) -> object:
        """Return the literal passed at a position or by a keyword; None if there is none."""
        value = self.get(position, name)
        return value.const if isinstance(value, Py) else None

    def as_tensors(self) -> Arguments:
        """Return the arguments as Keras passes them to a model's `call`, with ndarrays turned into tensors."""
        return Arguments(
            [(expression, _as_tensor(value)) for expression, value in self.positional],
            {name: (expression, _as_tensor(value)) for name, (expression, value) in self.named.items()},
            self.open,
        )

    @property
    def pairs(self) -> tuple[tuple[ast.expr, Value], ...]:
        """All expressions and values passed."""
        return (*self.positional, *self.named.values())

    @property
    def values(self) -> list[Value]:
        """All values passed."""
        return [value for _, value in self.pairs]

    @property
    def by_position(self) -> tuple[Value, ...]:
        """The values passed by position."""
        return tuple(value for _, value in self.positional)

    @property
    def by_name(self) -> dict[str, Value]:
        """The values passed by keyword."""
        return {name: value for name, (_, value) in self.named.items()}


def _as_tensor(value: Value) -> Value:
    if isinstance(value, Array):
        return Tensor(dtype=value.dtype, pixels=value.pixels)
    if isinstance(value, Seq) and value.items is not None:
        return replace(value, items=tuple(_as_tensor(item) for item in value.items))
    return value
