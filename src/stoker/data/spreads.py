"""How values are spread: least, largest, mean and a histogram."""

from __future__ import annotations

from typing import Any

import numpy as np

_BINS = 10
# Of a category, how many values are named.
TOP = 10
# How long a survey reads to say how fast that is.
SPEED_S = 2.0


def spread(values: Any) -> dict[str, Any] | None:
    """Least, largest, mean and ten equal steps between; None where there is no value."""
    there = np.asarray(values)
    there = there[np.isfinite(there)] if there.dtype.kind == "f" else there
    if not len(there):
        return None
    low, high = there.min(), there.max()
    # From the least value on: the digits of large whole numbers stay exact.
    above = (there - low).astype(np.float64)
    counts, _ = np.histogram(above, _BINS, (0, float(above.max()) or 1))
    mean = float(low) + float(above.mean())
    return {"least": low.item(), "largest": high.item(), "mean": mean, "histogram": counts.tolist()}
