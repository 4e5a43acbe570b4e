"""The option `experiments` of `stoker run`, `stoker.Watch` and `%%stoker`: how long repairs may be timed."""

from __future__ import annotations

import dataclasses

from stoker.errors import UsageError
from stoker.units import seconds_of

OFF = "off"


@dataclasses.dataclass(frozen=True)
class ExperimentOptions:
    """Seconds for timing repairs at the end of the run (None: the default time, 0: none), and whether to say so."""

    seconds: float | None = None
    announced: bool = True
    # Whether the recorded steps are kept beside the record.
    keeps_step: bool = False


def experiment_seconds(given: str | float | None) -> float | None:
    """Parse `60s`, `2m` or a number as seconds; return 0 for `off`, and None for the default time.

    Raises:
        UsageError: the value is neither a time nor `off`.
    """
    if given is None or given == OFF:
        return None if given is None else 0.0
    seconds = seconds_of(str(given))
    if seconds is None:
        raise UsageError(f"{given!r} is not a time: use 60s, 2m, or off")
    return seconds
