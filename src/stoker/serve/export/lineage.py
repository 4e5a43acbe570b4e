"""The origin of a bundle: the run that trained its model, and the export, which is a run of its own.

The training run makes the model, known by the content of its weights; the export uses it and makes the bundle; a server
uses the bundle. So the store leads from an answer back to the data.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from stoker.errors import ArgumentError, RecordError
from stoker.tf_internals.types import Model, Variable
from stoker.tracking.store import address, fingerprints
from stoker.tracking.store.connections import StoreError
from stoker.tracking.store.linking import MAKES, USES, link_artifact
from stoker.tracking.store.origins import find_origin
from stoker.tracking.store.provenance import read_provenance
from stoker.tracking.store.queries import open_reader
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.writer import writer_for

KIND = "bundle"
_WAIT_S = 10.0


@dataclass(frozen=True)
class Lineage:
    """The facts known about a model's origin.

    Attributes:
        store: the store that holds it; None if nothing is kept.
        run: the id of the run that trained the model; "" if unknown.
        training: that run, its code and its data, as plain values.
        evaluation: the last value of each of that run's series.
        fault: why the store could not be asked.
    """

    store: address.Address | None
    run: str = ""
    training: Mapping[str, object] | None = None
    evaluation: Mapping[str, float] | None = None
    fault: str = ""


def lineage_of(model: Model, run: str | None, url: str | None) -> Lineage:
    """Look up the run that trained the model: the given one, or the one seen in this process.

    Raises:
        ArgumentError: the named run does not exist.
    """
    origin = None if run is not None or url is not None else find_origin(model)
    store = address.find(url) if origin is None else origin.store
    named = run if run is not None else origin.run if origin is not None else None
    if store is None or named is None:
        if run is not None:
            raise ArgumentError(f"run={run!r}: the store is switched off")
        return Lineage(store)
    writer_for(store).flush(_WAIT_S)
    try:
        training = read_provenance(store, named)
        with open_reader(store) as reader:
            (row,) = reader.runs(training["run"])
    except RecordError as error:
        if run is not None:
            raise ArgumentError(f"run={run!r}: {error}") from None
        return Lineage(store, fault=str(error))
    except StoreError as error:
        return Lineage(store, named, fault=str(error))
    last = {
        name: one.last for name, one in row.series.items() if _is_result(name) and math.isfinite(one.last)
    }
    return Lineage(store, training["run"], training, last)


def _is_result(name: str) -> bool:
    return name != "epoch" and "/" not in name


class Exporting:
    """The export as a run of the store, used as a context manager."""

    def __init__(self, known: Lineage, model: Model, target: Path) -> None:
        self._known, self._target = known, target
        params = {"model": str(model.name), **({"run": known.run} if known.run else {})}
        self._run = TrackedRun(target.name, params, store=known.store, kind="export")

    def __enter__(self) -> Exporting:
        self._run.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run.__exit__(kind, error, trace)
        self._run.flush(_WAIT_S)

    def link_model(self, weights: Mapping[str, Variable], name: str) -> None:
        """Note that this run uses the model, identified by its weights, which the training run made."""
        if self._known.store is None:
            return
        found = fingerprints.hash_data(dict(weights))
        for run, relation in ((self._run.id, USES), (self._known.run, MAKES)):
            if run:
                self._run.put(*link_artifact(run, relation, found, kind="model", name=name))

    def describe(self) -> dict[str, object]:
        """Return what `bundle.json` says about this run, the training run and the head of the audit log."""
        known = self._known
        training = {"training": dict(known.training)} if known.training is not None else {}
        if known.store is None:
            return {**training, "export": None, "audit": None}
        self._run.flush(_WAIT_S)
        try:
            with open_reader(known.store) as reader:
                head = reader.audit_head()
        except StoreError:
            head = None  # what the run logs is still in the spool
        audit = None if head is None else {"store": str(known.store), "seq": head[0], "hash": head[1]}
        return {**training, "export": self._run.id, "audit": audit}

    def link_bundle(self) -> None:
        """Note that this run made the bundle."""
        self._run.artifact(self._target, kind=KIND)
