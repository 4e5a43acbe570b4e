"""Which run a model in memory was trained by: noted when it is trained, asked when it is exported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from stoker.tracking.store.address import Address
from stoker.tracking.store.tracking import Run


@dataclass(frozen=True)
class Origin:
    """A run, and the store that has it."""

    run: str
    store: Address


# The ids only: a run may hold the data it was given.
_origins: WeakKeyDictionary[Any, Origin] = WeakKeyDictionary()


def note(model: Any, run: Run) -> None:
    """This run trains this model."""
    if run.store is not None:
        _origins[model] = Origin(run.id, run.store)


def of(model: Any) -> Origin | None:
    """The last run that trained it in this process, if one was kept."""
    return _origins.get(model)
