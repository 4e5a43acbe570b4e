"""The guard: a hidden sync, copy or retrace fails at the line that does it.

    with stoker.guard(warmup=2):
        for batch in data:
            step(batch)

    with stoker.allow("log every 100 steps"):
        print(float(loss))

While no guard is open, TensorFlow is exactly as it made itself. Importing this package does not import TensorFlow.
"""

from stoker.guards.entry import Guard, bind, guard
from stoker.guards.report import (
    CopyError,
    EagerOpError,
    GuardError,
    GuardWarning,
    Line,
    Report,
    RetraceError,
    SyncError,
)
from stoker.guards.scope import allow

__all__ = [
    "CopyError",
    "EagerOpError",
    "Guard",
    "GuardError",
    "GuardWarning",
    "Line",
    "Report",
    "RetraceError",
    "SyncError",
    "allow",
    "bind",
    "guard",
]
