"""Layer names for columns: a column may have any name, but a layer may not."""

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Iterator


def layer_names(columns: list[str]) -> dict[str, str]:
    """Return for each column a unique layer name that Keras and TensorFlow accept: its own name if possible."""
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
    """Silence Keras' warning that a column and its input layer have different names.

    They have to differ: a layer's name has no slash, TensorFlow accepts no spaces or umlauts, and another layer may
    have the name. A model is called with a dict of columns, and only its keys matter.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "When providing `inputs` as a dict, all keys", UserWarning)
        yield
