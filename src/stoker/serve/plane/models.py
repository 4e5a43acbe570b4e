"""The models by name and version, and their replacement while they answer.

A model's path is a bundle, a SavedModel, or a directory in which bundles or SavedModels have numbers as names, as
TensorFlow Serving expects. A version that is renamed into place is loaded and warmed up while the old one answers; if
it cannot be loaded, nothing changes.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stoker.errors import StokerError
from stoker.serve.batching import LoopQueue, now
from stoker.serve.bundle import BundleError
from stoker.serve.drift import Shift
from stoker.serve.plane.deployment import Deployment
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.ledger import Facts
from stoker.serve.plane.metrics import Metrics
from stoker.serve.plane.served import Answers, ServedSignature
from stoker.serve.plane.settings import ALL_VERSIONS, ALONE, ServerSettings, ServerWorker, VersionPolicy
from stoker.serve.plane.versions import Mark, Version, VersionLoader, models_at, read_mark
from stoker.serve.rollout.shadow import Shadows
from stoker.serve.rows import InputRows

_RETRY_S = 10.0
_LABELS = {"latest": 0, "stable": 0, "previous": 1}


@dataclass(frozen=True)
class ModelSource:
    """The place of a model's versions, and which of them to load."""

    path: Path
    policy: VersionPolicy = ALL_VERSIONS

    def find(self) -> dict[Path, tuple[int | None, Mark]]:
        """Return the versions to load: each place with its number, None for the model's own, and its mark."""
        found = {
            place: (int(place.name) if place.name.isdecimal() and place != self.path else None, mark)
            for place, mark in models_at(self.path).items()
        }
        chosen = self.policy.choose(number for number, _ in found.values() if number is not None)
        return {place: one for place, one in found.items() if one[0] is None or one[0] in chosen}


class ServedModels:
    """All models that one process serves."""

    def __init__(
        self,
        settings: ServerSettings,
        metrics: Metrics,
        say: Callable[[str], None],
        worker: ServerWorker = ALONE,
    ) -> None:
        self.settings, self.metrics, self._say = settings, metrics, say
        self.deployment = Deployment(settings, worker.number, say)
        self._loader = VersionLoader(settings, metrics, say)
        self._worker = worker
        self._reported: set[tuple[str, str, str]] = set()  # shifts that were already reported
        self._sources = {
            name: ModelSource(Path(path), settings.policies.get(name, ALL_VERSIONS))
            for name, path in settings.models.items()
        }
        self._versions: dict[str, dict[int, Version]] = {name: {} for name in self._sources}
        self._queues: list[LoopQueue] = []
        self.shadows = Shadows()
        self._failed: dict[Path, tuple[Mark, float]] = {}  # its mark, and when to try again
        self._ended = threading.Event()
        self._changing = threading.Lock()
        self._watcher = threading.Thread(target=self._watch, name="stoker-reload", daemon=True)

    def load(self) -> None:
        """Load everything.

        Raises:
            BundleError: a model has no version that works, and the server is not set to wait for one.
        """
        for name, source in self._sources.items():
            try:
                self._versions[name] = self._load_all(name, source)
            except BundleError as error:
                if not self.settings.waits_for_models:
                    raise
                self._say(f"{name}: {error}; waiting for a version that works")
        self._list_queues()
        self.shadows.start(self.settings, self._load_candidate, self._say, self.deployment.record_conclusion)

    def _load_all(self, name: str, source: ModelSource) -> dict[int, Version]:
        places = source.find()
        if not places:
            raise BundleError(
                f"{source.path} is neither a bundle nor a SavedModel, nor a directory of numbered ones"
            )
        loaded = (self._load(name, place, *one) for place, one in places.items())
        return {one.number: one for one in loaded}

    def _load(self, name: str, place: Path, number: int | None, mark: Mark) -> Version:
        made = self._loader.load(name, place, mark, number)
        self.deployment.record_model(name, made)
        return made

    def _load_candidate(self, name: str, place: Path) -> Version:
        loader = VersionLoader(self.settings, self.metrics, lambda line: self._say(f"candidate for {line}"))
        return loader.load(name, place, (), None)

    def watch(self) -> None:
        """Start looking for new versions."""
        self._watcher.start()

    def close(self) -> None:
        """Stop looking for new versions and end the queues."""
        self._ended.set()
        self.shadows.close(self._say)
        for queue in self._queues:
            queue.close()

    def _list_queues(self) -> None:
        self._queues = [
            signature.queue
            for versions in self._versions.values()
            for one in versions.values()
            for signature in one.signatures.values()
        ]

    def names(self) -> list[str]:
        """Return the names of the models."""
        return list(self._versions)

    def is_loaded(self) -> bool:
        """Return whether every model has a version that answers."""
        return all(self._versions.values())

    def is_any_full(self) -> bool:
        """Return whether some queue takes no more rows. Asked before every request, so it is written to be quick."""
        for queue in self._queues:  # noqa: SIM110 - `any` takes three times as long
            if queue.is_full:
                return True
        return False

    def versions(self, name: str) -> list[Version]:
        """Return all versions of a model, the newest first; raise RequestError if there is no such model."""
        if name not in self._versions:
            have = ", ".join(map(repr, self.names())) or "none"
            raise RequestError(404, f"there is no model {name!r}; the server has {have}")
        found = self._versions[name]
        return [found[number] for number in sorted(found, reverse=True)]

    def working_versions(self, name: str) -> list[Version]:
        """Return all versions of a model, the newest first; raise RequestError if there are none."""
        found = self.versions(name)
        if not found:
            raise RequestError(404, f"model {name!r} has no version that works yet")
        return found

    def version(self, name: str, number: str | None = None, label: str | None = None) -> Version:
        """Return a version by number or label ("latest", "stable", "previous"); raise RequestError if there is none."""
        numbered = self._versions.get(name)
        if number is None and label is None and numbered:
            return numbered[max(numbered)]
        found = self.working_versions(name)
        if label is not None:
            return self._labelled(name, label, found)
        for one in found:
            if str(one.number) == number:
                return one
        have = ", ".join(str(one.number) for one in found)
        raise RequestError(404, f"model {name!r} has no version {number!r}; it has {have}")

    def labels(self, name: str) -> list[str]:
        """Return the labels that versions of a model have."""
        found = self.versions(name)
        given = [
            label
            for label, number in self._sources[name].policy.labels.items()
            if any(one.number == number for one in found)
        ]
        return [
            *given,
            *(label for label, place in _LABELS.items() if place < len(found) and label not in given),
        ]

    def _labelled(self, name: str, label: str, found: list[Version]) -> Version:
        given = self._sources[name].policy.labels.get(label)
        for one in found:
            if one.number == given:
                return one
        if given is not None or _LABELS.get(label, len(found)) >= len(found):
            raise RequestError(404, f"model {name!r} has no version with the label {label!r}")
        return found[_LABELS[label]]

    def sample(
        self,
        request_id: str,
        name: str,
        version: Version,
        signature: ServedSignature,
        rows: InputRows,
        answers: Answers,
    ) -> None:
        """Record a request with its answers, and compare its rows with the training rows."""
        inputs = {field.name: array for field, array in zip(signature.inputs, rows.arrays, strict=True)}
        self.deployment.record(request_id, name, version.number, signature.name, inputs, answers)
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
        """Return how far the newest version's inputs are from the training rows, in this worker's sample."""
        return self.version(name).drift.shifts() if self._versions.get(name) else []

    def note_waiting(self) -> None:
        """Record how many rows wait now."""
        for name in self.names():
            self.metrics.set_waiting(name, sum(one.waiting_rows for one in self.versions(name)))

    def extra_text(self) -> str:
        """Return the drift and the candidates' results in Prometheus' format, of this worker alone."""
        return self._drift_text() + self.shadows.text(self._worker.number)

    def _drift_text(self) -> str:
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
        """Return the ledger's accounts of a model, and the facts that advice depends on."""
        version = self.version(name)
        known = version.bundle
        # Only TensorFlow takes texts; a model that is not a bundle can have no other engine either.
        texts = known is None or any(one.dtype == "string" for one in known.signature.inputs)
        settled = texts or (known is not None and bool(known.description.get("engines")))
        return self.metrics.books(name, self.settings.batch, version.engine, settled)

    def _watch(self) -> None:
        poll_s = self.settings.model_config_poll_s if self.settings.model_config else 0.0
        pause = min(self.settings.reload_s, poll_s or self.settings.reload_s)
        read_at = now() + poll_s
        config = read_mark(self.settings.model_config)
        while not self._ended.wait(pause):
            if poll_s and now() >= read_at:
                read_at = now() + poll_s
                config = self._reread_config(config)
            with self._changing:
                for name, source in self._sources.items():
                    self.refresh(name, source)

    def _reread_config(self, known: Mark) -> Mark:
        """Serve what the list of models says now, if it has changed; an invalid list changes nothing."""
        from stoker.serve.plane.model_config import read_config  # imported late, as it imports this module

        found = read_mark(self.settings.model_config)
        if found != known:
            try:
                self.replace_sources(read_config(self.settings.model_config))
                self._say(f"{self.settings.model_config}: serving {', '.join(self.names())}")
            except StokerError as error:
                self._say(f"{self.settings.model_config} was rejected: {error}")
        return found

    def replace_sources(self, sources: Mapping[str, ModelSource]) -> None:
        """Serve these models instead of the present ones; models that are in both keep answering throughout.

        Raises:
            BundleError: a new model has no version that works; then nothing changes.
        """
        with self._changing:
            fresh = {
                name: self._load_all(name, source)
                for name, source in sources.items()
                if name not in self._sources
            }
            self.metrics.add_models(fresh)
            changed = [name for name, source in sources.items() if self._sources.get(name, source) != source]
            self._sources = dict(sources)
            self._versions = {
                name: fresh[name] if name in fresh else self._versions[name] for name in self._sources
            }
            for name in changed:
                self.refresh(name, self._sources[name])
            self._list_queues()

    def _is_worth_trying(self, place: Path, mark: Mark) -> bool:
        """Return whether a version is new, was replaced since it failed, or failed for a reason that may pass."""
        failed, again = self._failed.get(place, (None, 0.0))
        return failed != mark or now() >= again

    def refresh(self, name: str, source: ModelSource) -> None:
        """Load the versions that are there now; keep an old one if its replacement fails to load."""
        places = source.find()
        old = {one.path: one for one in self._versions[name].values()}
        if not places or {place: one.mark for place, one in old.items()} == {
            place: mark for place, (_, mark) in places.items()
        }:
            return
        fresh: dict[int, Version] = {}
        for place, (number, mark) in places.items():
            known = old.get(place)
            if (known is None or known.mark != mark) and self._is_worth_trying(place, mark):
                try:
                    known = self._load(name, place, number, mark)
                    self._say(f"{name}: version {known.number} answers, from {place}")
                except Exception as error:  # noqa: BLE001 - whatever a damaged model raises, the old one answers on
                    self._failed[place] = (mark, _retry_at(error))
                    self._say(f"{name}: {place} was rejected: {type(error).__name__}: {error}")
            if known is not None:
                fresh[known.number] = known
        if not fresh:
            return
        # Replace all at once, so that a request sees either the old versions or the new ones.
        self._versions[name] = fresh
        self._list_queues()


def _retry_at(error: BaseException) -> float:
    """Return when to try a rejected bundle again: soon if the disk or the memory was at fault, not the bundle."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError | MemoryError) and not isinstance(cause, FileNotFoundError):
            return now() + _RETRY_S
        cause = cause.__cause__ or cause.__context__
    return math.inf


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
