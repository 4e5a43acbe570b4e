"""Stoker keeps TensorFlow programs at full throughput.

    $ stoker run train.py          # where every second goes, and which line spends it

    with stoker.guard():           # a hidden sync, copy or retrace raises at its line
        train()

Importing this package never imports TensorFlow: names are resolved when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from stoker.version import __version__

if TYPE_CHECKING:
    from stoker import software_gpu
    from stoker.guards import (
        CopyError,
        EagerOpError,
        GuardError,
        GuardWarning,
        RetraceError,
        SyncError,
        allow,
        bind,
        guard,
    )
    from stoker.notebook import load_ipython_extension
    from stoker.train.checkpoint import Checkpoint, CheckpointError, CheckpointWarning
    from stoker.train.evaluate import evaluate
    from stoker.train.fit import fit
    from stoker.train.plan import Plan
    from stoker.train.predict import predict
    from stoker.watch import Watch

_HOMES = {
    "Checkpoint": "stoker.train.checkpoint",
    "CheckpointError": "stoker.train.checkpoint",
    "CheckpointWarning": "stoker.train.checkpoint",
    "CopyError": "stoker.guards",
    "EagerOpError": "stoker.guards",
    "GuardError": "stoker.guards",
    "GuardWarning": "stoker.guards",
    "Plan": "stoker.train.plan",
    "RetraceError": "stoker.guards",
    "SyncError": "stoker.guards",
    "Watch": "stoker.watch",
    "allow": "stoker.guards",
    "bind": "stoker.guards",
    "evaluate": "stoker.train.evaluate",
    "fit": "stoker.train.fit",
    "guard": "stoker.guards",
    "load_ipython_extension": "stoker.notebook",
    "predict": "stoker.train.predict",
}

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "CheckpointWarning",
    "CopyError",
    "EagerOpError",
    "GuardError",
    "GuardWarning",
    "Plan",
    "RetraceError",
    "SyncError",
    "Watch",
    "__version__",
    "allow",
    "bind",
    "evaluate",
    "fit",
    "guard",
    "load_ipython_extension",
    "predict",
    "software_gpu",
]


def __getattr__(name: str) -> Any:
    if name == "software_gpu":
        return importlib.import_module("stoker.software_gpu")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'stoker' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
