"""Tables to read, and what plain pandas and NumPy say is in them."""

from __future__ import annotations

from typing import Any

import numpy as np


def mixed(rows: int = 1000, seed: int = 0) -> Any:
    """A frame with a column of every kind; `id` tells the rows apart."""
    import pandas as pd

    random = np.random.default_rng(seed)
    days = pd.Timestamp("2021-03-04") + pd.to_timedelta(random.integers(0, 900, rows), unit="D")
    return pd.DataFrame(
        {
            "id": np.arange(rows) + 2**60,
            "weight": random.normal(50, 9, rows).round(4),
            "count": random.integers(-5, 99, rows),
            "colour": np.array(["red", "green", "", "blue"])[random.integers(0, 4, rows)],
            "day": days.strftime("%Y-%m-%d"),
            "sold": random.integers(0, 2, rows).astype(bool),
            "note": [f"a longer remark on row number {number}, größer" for number in range(rows)],
            "kind": np.array(["cat", "dog", "eel"])[random.integers(0, 3, rows)],
        }
    )


def rows_of(dataset: Any) -> tuple[dict[str, Any], Any]:
    """All columns and labels of one pass, one array each."""
    inputs: dict[str, list[Any]] = {}
    labels = []
    for element in dataset:
        columns, label = element if isinstance(element, tuple) else (element, None)
        for name, value in columns.items():
            inputs.setdefault(name, []).append(value.numpy())
        if label is not None:
            labels.append(label.numpy())
    joined = {name: np.concatenate(parts) for name, parts in inputs.items()}
    return joined, np.concatenate(labels) if labels else None


def words(values: Any) -> list[str]:
    return [value.decode() for value in values]
