"""Layers whose `call` is another one for a while: what is traced meanwhile has that one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from stoker.tf_internals.types import Layer, Tensor


def is_plain(layer: Layer) -> bool:
    """Whether it computes in float32, and its `call` is its class'."""
    return "call" not in vars(layer) and layer.compute_dtype == layer.variable_dtype == "float32"


@contextmanager
def replaced(calls: Iterable[tuple[Layer, Callable[..., Tensor]]]) -> Iterator[None]:
    """Layers, each with what is called in place of its `call`."""
    calls = list(calls)
    for layer, call in calls:
        layer.__dict__["call"] = call
    try:
        yield
    finally:
        for layer, _ in calls:
            del layer.__dict__["call"]
