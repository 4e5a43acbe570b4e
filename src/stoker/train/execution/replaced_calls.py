"""Layers whose `call` is another one for a while: what is traced meanwhile has that one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any


def is_plain(layer: Any) -> bool:
    """Whether it computes in float32, and its `call` is its class'."""
    return "call" not in vars(layer) and layer.compute_dtype == layer.variable_dtype == "float32"


@contextmanager
def replaced(calls: Iterable[tuple[Any, Callable[..., Any]]]) -> Iterator[None]:
    """Layers, each with what is called in place of its `call`."""
    calls = list(calls)
    for layer, call in calls:
        vars(layer)["call"] = call
    try:
        yield
    finally:
        for layer, _ in calls:
            del vars(layer)["call"]
