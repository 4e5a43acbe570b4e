"""Remember which run trained a model in memory: noted when the model is trained, looked up when it is exported."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from stoker.tracking.store.address import Address
from stoker.tracking.store.tracking import TrackedRun


@dataclass(frozen=True)
class Origin:
    """A run, and the store that keeps it."""

    run: str
    store: Address


# Only ids are kept, as a run may hold the data it was given.
_origins: WeakKeyDictionary[object, Origin] = WeakKeyDictionary()


def note_origin(model: object, run: TrackedRun) -> None:
    """Note that a run trains a model."""
    if run.store is not None:
        _origins[model] = Origin(run.id, run.store)


def find_origin(model: object) -> Origin | None:
    """Return the last run that trained a model in this process, if there was one."""
    return _origins.get(model)
