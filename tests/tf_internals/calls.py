"""Counting the calls that pass a place of TensorFlow or Keras."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stoker.tf_internals import Place


@contextmanager
def recorded(place: Place) -> Iterator[list[tuple[Any, ...]]]:
    """The positional arguments of each call, while this lasts."""
    owner, name = place
    original, calls = getattr(owner, name), list[tuple[Any, ...]]()

    def record(*args: Any, **kwds: Any) -> Any:
        calls.append(args)
        return original(*args, **kwds)

    setattr(owner, name, record)
    try:
        yield calls
    finally:
        setattr(owner, name, original)
