"""Which variables a pattern means: "encoder/*", "head", "bias", "block_?/dense/kernel".

A pattern is a shell pattern over a variable's path. It may start at any layer ("dense/kernel" finds
"model/encoder/dense/kernel"), and a layer's name stands for all that is in the layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from stoker.errors import ArgumentError
from stoker.tf_internals.types import Variable

Value = TypeVar("Value")


def path_of(variable: Variable) -> str:
    """A variable's path: Keras' own, or the name of a bare tf.Variable."""
    path = getattr(variable, "path", None)
    return str(path) if path else str(variable.name).partition(":")[0]


def matches(pattern: str, path: str) -> bool:
    """Whether a pattern means the variable of this path."""
    parts = path.split("/")
    tails = ["/".join(parts[start:]) for start in range(len(parts))]
    return any(fnmatchcase(tail, pattern) or fnmatchcase(tail, f"{pattern}/*") for tail in tails)


def choose(patterns: Mapping[str, Value], paths: Sequence[str], option: str) -> list[Value | None]:
    """For each path the value of the first pattern that means it; a pattern that means none is an error."""
    for pattern in patterns:
        if not any(matches(pattern, path) for path in paths):
            known = ", ".join(paths[:8]) + (", ..." if len(paths) > 8 else "")
            raise ArgumentError(
                f"{option}: no trainable variable matches {pattern!r}. The model has: {known}"
            )
    return [
        next((value for pattern, value in patterns.items() if matches(pattern, path)), None) for path in paths
    ]
