"""Columns may be called anything; the layers that take them in may not."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator


def layer_names(columns: list[str]) -> dict[str, str]:
    """Names Keras and TensorFlow take for layers, each once; a column's own name where it is one."""
    names: dict[str, str] = {}
    for number, column in enumerate(columns):
        plain = re.sub(r"[^A-Za-z0-9_]", "_", column)
        # The scope of a layer's operations must not begin with an underscore.
        plain = plain if plain and plain[0] != "_" else f"column{plain}"
        free = f"{plain}_{number}" if plain in names.values() else plain
        while free in names.values():
            free += "_"
        names[column] = free
    return names


@contextlib.contextmanager
def any_column_names() -> Iterator[None]:
    """Models are made and loaded here without Keras' warning that a column is not called as its input layer is.

    It cannot be: no layer's name has a slash, TensorFlow takes no spaces or umlauts for arguments, and a name may be
    another layer's. A model is called with a dict of columns, which goes by the dict's keys alone.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "When providing `inputs` as a dict, all keys", UserWarning)
        yield
