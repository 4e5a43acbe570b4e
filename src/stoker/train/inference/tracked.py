"""An evaluation or a prediction in the store."""

from __future__ import annotations

from stoker.tf_internals.types import Data, Model
from stoker.tracking.store import address
from stoker.tracking.store.tracking import TrackedRun
from stoker.train.execution.own_methods import original_arguments


def track_run(kind: str, model: Model, data: tuple[Data, ...], **params: object) -> TrackedRun:
    """Begin a run of this kind, linked to its data by content."""
    name = str(model.name)
    run = TrackedRun(name, {"model": name, **params}, store=address.find(), kind=kind)
    original = original_arguments(model, kind)
    if original is not None:
        # A method of the model's own made this data from the user's.
        data = tuple(original.get(part) for part in ("x", "y", "sample_weight"))
    given = data if any(part is not None for part in data[1:]) else data[0]
    run.uses_data(given, name="data")
    return run
