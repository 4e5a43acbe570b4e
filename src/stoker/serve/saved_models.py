"""Find the model that a run of the store made: a `.keras` file, or the one in its bundle, if it is unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stoker.errors import UsageError
from stoker.serve import bundle
from stoker.tracking.store import fingerprints
from stoker.tracking.store.address import Address
from stoker.tracking.store.linking import MAKES
from stoker.tracking.store.queries import open_reader

_MOST_CHILDREN = 300


@dataclass(frozen=True)
class SavedModel:
    """A run's model: the run's full id, the file, and the names of the classes, if known."""

    run: str
    file: Path
    labels: tuple[str, ...] | None = None


def model_of(store: Address, named: str) -> SavedModel:
    """Find the newest model that a run made.

    Raises:
        RecordError: there is no such run.
        UsageError: the run made no model, or the file has changed since.
    """
    with open_reader(store) as reader:
        run = reader.resolve(named)
        # In a program under `stoker run`, the models belong to the trainings inside it.
        ids = [run, *reader.children(run, _MOST_CHILDREN)]
        made = [link for one in ids for link in reader.artifacts(one) if link.relation == MAKES and link.path]
    models = [one for one in made if one.path.endswith(".keras") or one.kind == "bundle"]
    if not models:
        raise UsageError(
            f"run {run} saved no model: save one with keras.callbacks.ModelCheckpoint, train to the end with "
            "stoker.fit(..., checkpoint=DIR), or note the file with run.artifact('model.keras', kind='model')"
        )
    newest = max(models, key=lambda one: one.time)
    place = Path(newest.path)
    if not place.exists():
        raise UsageError(f"{place}, the model of run {run}, no longer exists")
    if fingerprints.hash_path(place).hash != newest.hash:
        raise UsageError(f"{place} is not the file that run {run} made: it has been replaced")
    if newest.kind != "bundle":
        return SavedModel(run, place)
    return SavedModel(run, place / bundle.KERAS, bundle.read(place).labels)
