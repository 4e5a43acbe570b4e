"""Where Python's and NumPy's global generators are: a pipeline may draw from them on the host."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np


def host_random_state() -> dict[str, Any]:
    """Where Python's and NumPy's global generators are; goes into `progress`."""
    return {"python": random.getstate(), "numpy": np.random.get_state()}


def restore_host_random_state(state: Mapping[str, Any]) -> None:
    """Put both back."""
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
