"""The models by name and version, and how they are replaced while they answer.

A model's path is a bundle, or a directory of bundles whose names are numbers, as TensorFlow Serving has them. A bundle
renamed into place is loaded and warmed up while the old one answers; one that cannot be loaded changes nothing.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stoker.serve import bundle
from stoker.serve.batching import LoopQueue, now
from stoker.serve.drift import Drift, Shift
from stoker.serve.plane.deployment import Deployment
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.ledger import Facts
from stoker.serve.plane.metrics import Metrics
from stoker.serve.plane.settings import ALONE, ServerSettings, ServerWorker
from stoker.serve.predictor import Predictor
from stoker.serve.rows import InputRows
from stoker.serve.signature import Array, Field

Mark = tuple[int, int, int]
_RETRY_S = 10.0


@dataclass(frozen=True)
class Version:
    """A loaded bundle and the queue before it."""

    number: int
    predictor: Predictor
    queue: LoopQueue
    mark: Mark
    drift: Drift

    @property
    def inputs(self) -> tuple[Field, ...]:
        """What it takes."""
        return self.predictor.bundle.signature.inputs


class ServedModels:
    """All models of one process."""

    def __init__(
        self,
        settings: ServerSettings,
        metrics: Metrics,
        say: Callable[[str], None],
        worker: ServerWorker = ALONE,
    ) -> None:
        self.settings, self.metrics, self._say = settings, metrics, say
        self.deployment = Deployment(settings, worker.number, say)
        self._worker = worker
        self._reported: set[tuple[str, str, str]] = set()  # shifts that were said
        self._versions: dict[str, dict[int, Version]] = {name: {} for name in settings.models}
        self._failed: dict[Path, tuple[Mark, float]] = {}  # and when to try again
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="stoker-reload", daemon=True)

    def load(self) -> None:
        """Load everything.

        Raises:
            BundleError: a model has no bundle that works.
        """
        for name, path in self.settings.models.items():
            places = bundles_of(Path(path))
            if not places:
                raise bundle.BundleError(f"{path} is neither a bundle nor a directory of numbered bundles")
            self._versions[name] = {
                one.number: one for one in (self._version(name, *each) for each in places.items())
            }

    def watch(self) -> None:
        """Start looking for new bundles."""
        self._watcher.start()

    def close(self) -> None:
        """Stop looking for new bundles and end the queues."""
        self._ended.set()
        for versions in self._versions.values():
            for one in versions.values():
                one.queue.close()

    def names(self) -> list[str]:
        """The names of the models."""
        return list(self._versions)

    def is_any_full(self) -> bool:
        """Whether some queue takes no more rows. Asked before every request, so it is written to be quick."""
        for versions in self._versions.values():
            for one in versions.values():
                if one.queue.is_full:
                    return True
        return False

    def versions(self, name: str) -> list[Version]:
        """All versions of a model, the newest first; RequestError if there is no such model."""
        if name not in self._versions:
            raise RequestError(404, f"there is no model {name!r}; there are {', '.join(self.names())}")
        found = self._versions[name]
        return [found[number] for number in sorted(found, reverse=True)]

    def version(self, name: str, number: str | None = None, label: str | None = None) -> Version:
        """One version, by its number or its label ("latest", "stable", "previous"); RequestError if there is none."""
        if number is None and label is None and name in self._versions:
            numbered = self._versions[name]
            return numbered[max(numbered)]
        found = self.versions(name)
        if label is not None:
            places = {"latest": 0, "stable": 0, "previous": 1}
            if places.get(label, len(found)) >= len(found):
                raise RequestError(404, f"model {name!r} has no version with the label {label!r}")
            return found[places[label]]
        for one in found:
            if str(one.number) == number:
                return one
        have = ", ".join(str(one.number) for one in found)
        raise RequestError(404, f"model {name!r} has no version {number!r}; it has {have}")

    def _version(self, name: str, place: Path, mark: Mark) -> Version:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bundle.BundleWarning)  # said below
            predictor = Predictor(
                place,
                engine=self.settings.engine or None,
                allow_ops=self.settings.allow_ops,
                require_signature=self.settings.public_key or None,
            )
        predictor.warm()
        number = (
            int(place.name) if place.name.isdecimal() and place != Path(self.settings.models[name]) else None
        )
        queue = LoopQueue(
            predictor.run,
            predictor.engine.row_seconds,
            self.settings.batch,
            self.settings.queue,
            lambda rows, seconds: self.metrics.count_call(name, rows, seconds),
        )
        known = predictor.bundle
        try:
            drift = Drift(known.signature.inputs, known.description.get("statistics") or {})
        except (KeyError, TypeError, ValueError, AttributeError):
            raise bundle.BundleError(f"{place} is damaged: its statistics are invalid") from None
        made = Version(known.version if number is None else number, predictor, queue, mark, drift)
        self._say(f"{name}: {predictor.engine}")
        if known.note:
            self._say(f"{name}: {known.note}")
        self.deployment.record_bundle(name, made.number, known)
        return made

    def sample(
        self, request_id: str, name: str, version: Version, rows: InputRows, answers: dict[str, Array]
    ) -> None:
        """Record a request with its answers, and compare its rows with the training rows."""
        inputs = {field.name: array for field, array in zip(version.inputs, rows.arrays, strict=True)}
        self.deployment.record(request_id, name, version.number, inputs, answers)
        if not version.drift:
            return
        version.drift.add(rows.arrays)
        shifts = version.drift.shifts()
        for one in shifts:
            key = (name, one.input, one.of)
            if one.sure and key not in self._reported:
                self._reported.add(key)
                self._say(f"{name}: {one.line}")
            elif not one.sure:
                self._reported.discard(key)
        self.deployment.log_drift(name, shifts)

    def drifts(self, name: str) -> list[Shift]:
        """How far the newest version's inputs are from the training rows, in this worker's sample."""
        return self.version(name).drift.shifts()

    def drift_text(self) -> str:
        """The drift in Prometheus' format."""
        shifts = [(name, one) for name in self.names() for one in self.drifts(name)]
        if not shifts:
            return ""
        head = (
            "# HELP stoker_drift How far inputs are from the training rows: a mean in deviations, a spread in powers "
            "of two, shares.\n# TYPE stoker_drift gauge\n"
        )
        lines = [
            f'stoker_drift{{model="{name}",input={_quote(one.input)},of="{one.of}",worker="{self._worker.number}"}} '
            f"{one.amount:.6g}\n"
            for name, one in shifts
        ]
        return head + "".join(lines)

    def books(self, name: str) -> tuple[dict[str, float], Facts]:
        """The ledger's accounts of a model, and what advice depends on."""
        predictor = self.version(name).predictor
        known = predictor.bundle
        texts = any(one.dtype == "string" for one in known.signature.inputs)  # only TensorFlow takes them
        settled = texts or bool(known.description.get("engines"))
        return self.metrics.books(name, self.settings.batch, predictor.engine.name, settled)

    def _watch(self) -> None:
        while not self._ended.wait(self.settings.reload_s):
            for name, path in self.settings.models.items():
                self.refresh(name, Path(path))

    def _is_worth_trying(self, place: Path, mark: Mark) -> bool:
        """Whether a bundle has not failed yet, was replaced since, or failed for a reason that may pass."""
        failed, again = self._failed.get(place, (None, 0.0))
        return failed != mark or now() >= again

    def refresh(self, name: str, path: Path) -> None:
        """Load the bundles that are there now; keep the old ones where that fails."""
        places = bundles_of(path)
        old = {one.predictor.bundle.path: one for one in self._versions[name].values()}
        if not places or {place: old[place].mark for place in old} == places:
            return
        fresh: dict[int, Version] = {}
        for place, mark in places.items():
            known = old.get(place)
            if (known is None or known.mark != mark) and self._is_worth_trying(place, mark):
                try:
                    known = self._version(name, place, mark)
                    self._say(f"{name}: version {known.number} answers, from {place}")
                except Exception as error:  # noqa: BLE001 - whatever a damaged bundle raises, the old one answers on
                    self._failed[place] = (mark, _retry_at(error))
                    self._say(f"{name}: {place} was rejected: {type(error).__name__}: {error}")
            if known is not None:
                fresh[known.number] = known
        # In one step, so that a request sees either the old versions or the new ones.
        if fresh:
            self._versions[name] = fresh


def _retry_at(error: BaseException) -> float:
    """When to try a rejected bundle again: soon if the disk or the memory was at fault, and not the bundle."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError | MemoryError) and not isinstance(cause, FileNotFoundError):
            return now() + _RETRY_S
        cause = cause.__cause__ or cause.__context__
    return math.inf


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def bundles_of(path: Path) -> dict[Path, Mark]:
    """The bundles at a path, each with a mark that changes when it is replaced."""
    found = {}
    for place in bundle.list_places(path):
        try:
            state = (place / bundle.DESCRIPTION).stat()
        except OSError:
            continue
        found[place] = (state.st_ino, state.st_mtime_ns, state.st_size)
    return found
