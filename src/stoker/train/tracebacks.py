"""Errors of a training run as Keras shows those of its `fit`: the program's own lines, not the forty between them.

`keras.config.disable_traceback_filtering()` shows everything, here as there.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

import keras
import tensorflow as tf

F = TypeVar("F", bound=Callable[..., Any])

_LEFT_OUT = tuple(
    os.path.join(os.path.dirname(os.path.abspath(path)), *below)
    for path, *below in ((__file__, ""), (keras.__file__, "src", ""), (tf.__file__, "python", ""))
)


def filtered(function: F) -> F:
    """Have errors that leave the function show only frames outside of TensorFlow, Keras and the trainer."""

    @functools.wraps(function)
    def run(*args: Any, **kwds: Any) -> Any:
        try:
            return function(*args, **kwds)
        except Exception as error:
            if keras.config.is_traceback_filtering_enabled():
                error.__traceback__ = _outside(error.__traceback__)
            raise

    return run  # type: ignore[return-value]


def _outside(trace: TracebackType | None) -> TracebackType | None:
    entries = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_LEFT_OUT):
            entries.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for entry in reversed(entries):
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept
