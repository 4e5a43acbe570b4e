"""A server as a run in the store: the bundles it uses, and a sample of its answers.

The process that holds the socket begins and ends the run. The first worker records which bundles answer. Each worker
keeps its own file of sampled answers; when the run ends, they become its artifacts.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import orjson

from stoker.errors import ArgumentError
from stoker.files import HOME
from stoker.serve.drift import Shift
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.rollout.recordings import plain_values
from stoker.serve.signature import Array
from stoker.tracking.store import audit, fingerprints
from stoker.tracking.store.address import Address, parse
from stoker.tracking.store.events import ValuesLogged
from stoker.tracking.store.linking import USES, link_artifact
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.writer import writer_for

if TYPE_CHECKING:
    # The process that holds the socket answers nothing, so it must not load TensorFlow.
    from stoker.serve.plane.versions import Version

ANSWERS = HOME / "answers"
_SECRET = ("token", "run", "store")
_WAIT_S = 5.0


def begin_run(settings: ServerSettings, store: Address | None) -> TrackedRun:
    """Begin the run of this server."""
    params = {name: value for name, value in vars(settings).items() if name not in _SECRET}
    return TrackedRun(", ".join(settings.models), params, store=store, kind="serve")


def end_run(run: TrackedRun, error: BaseException | None = None, code: int = 0) -> None:
    """End the run; the files that its workers recorded become its artifacts."""
    for file in sorted(ANSWERS.glob(f"{run.id}-*.jsonl")) if run.id else []:
        run.artifact(file, kind="answers")
    if error is None and code:
        run.finish("failed", error=f"exit code {code}", exit_code=code)
    else:
        run.finish_with(error, exit_code=code if error is None else None)
    run.flush(_WAIT_S)


class Deployment:
    """The records that one worker keeps in the store."""

    def __init__(self, settings: ServerSettings, worker: int, say: Callable[[str], None]) -> None:
        self._run = settings.run
        self._store = parse(settings.store) if settings.run and settings.store else None
        self._worker, self._first = worker, worker == 0
        self._rate, self._most = settings.record, settings.record_values
        self._say = say
        self._file = ANSWERS / f"{settings.run}-{worker}.jsonl"
        self._failed = False
        self._step = 0

    def is_sampled(self) -> bool:
        """Decide by chance whether to record this request."""
        return self._rate > 0 and random.random() < self._rate

    def record_model(self, name: str, version: Version) -> None:
        """Record that this version answers from now on."""
        if self._store is None or not self._first:
            return
        place = version.path.absolute()
        try:
            found = fingerprints.hash_path(place)
        except ArgumentError as error:
            self._say(f"{name}: cannot record the deployment in the store: {error}")
            return
        kind = "saved_model" if version.bundle is None else "bundle"
        events = link_artifact(self._run, USES, found, kind=kind, name=place.name, path=str(place))
        details = {"model": name, "version": version.number, "hash": found.hash, "path": str(place)}
        writer_for(self._store).put(*events, audit.note("deployed", self._run, details))

    def log_drift(self, name: str, shifts: list[Shift]) -> None:
        """Log how far the inputs of a model have moved from the training rows."""
        if self._store is not None and shifts:
            self._step += 1
            values = {f"drift/{name}/{one.input}/{one.of}": one.amount for one in shifts}
            writer_for(self._store).put(ValuesLogged(self._run, self._step, time.time(), values))

    def record_conclusion(self, name: str, found: Mapping[str, object]) -> None:
        """Record the conclusion about a candidate."""
        if self._store is not None:
            details = {"model": name, "worker": self._worker, **found}
            writer_for(self._store).put(audit.note(audit.COMPARED, self._run, details))

    def record(
        self,
        request: str,
        name: str,
        version: int,
        signature: str,
        inputs: Mapping[str, Array],
        answers: Mapping[str, Array],
    ) -> None:
        """Append a request and its answer to the sample."""
        if not self._run or self._failed:
            return
        entry = {
            "time": time.time(), "request": request, "model": name, "version": version, "signature": signature,
            "inputs": {field: plain_values(one, self._most) for field, one in inputs.items()},
            "answers": {field: plain_values(one, self._most) for field, one in answers.items()},
        }  # fmt: skip
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with open(self._file, "ab") as file:
                file.write(orjson.dumps(entry, option=orjson.OPT_SERIALIZE_NUMPY) + b"\n")
        except OSError as error:
            self._failed = True
            self._say(f"answers are not recorded: {self._file}: {error.strerror}")
