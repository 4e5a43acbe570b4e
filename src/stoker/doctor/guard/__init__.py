"""The guard: a hidden sync, copy or retrace fails at the line that does it.

    with stoker.guard(warmup=2):
        for batch in data:
            step(batch)

    with stoker.allow("log every 100 steps"):
        print(float(loss))

| module | subject |
|---|---|
| entry, functions | `guard`: a `with` block, a decorator |
| scope | one context variable: the open guards and `allow` regions of this context |
| hooks, tracing | the patches, installed while any guard is open in the process |
| events, placement | one sync, copy, retrace or eager op; whether a value is, or would be, in device memory |
| limits, steps | how many events are too many; where a step begins |
| report | counts by line, the errors, the warning |

A patch makes an `Event`; `events.deliver` hands it to the guards of the context, innermost first; `entry.Entered`
counts and acts. While no guard is open, TensorFlow is untouched. Importing this package does not import
TensorFlow.
"""

from stoker.doctor.guard.entry import Guard, bind, guard
from stoker.doctor.guard.report import (
    CopyError,
    EagerOpError,
    GuardError,
    GuardWarning,
    Line,
    Report,
    RetraceError,
    SyncError,
)
from stoker.doctor.guard.scope import allow

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
