"""The models by name and version, and how they are replaced while they answer.

A model's path is a bundle, or a directory of bundles whose names are numbers, as TensorFlow Serving has them. A bundle
that was renamed into place is loaded and warmed beside the old one, which answers until then; one that cannot be loaded
changes nothing.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stoker.serve import bundle
from stoker.serve.batching import BusyError, now
from stoker.serve.drift import Drift, Shift
from stoker.serve.http.deployment import Deployment
from stoker.serve.http.ledger import Facts
from stoker.serve.http.line import Line
from stoker.serve.http.messages import HttpError
from stoker.serve.http.metrics import Metrics
from stoker.serve.http.settings import Settings
from stoker.serve.predictor import Predictor
from stoker.serve.rows import Rows

Mark = tuple[int, int, int]
_RETRY_S = 10.0


@dataclass(frozen=True)
class Version:
    """A loaded bundle and the line before it."""

    number: int
    predictor: Predictor
    line: Line
    mark: Mark
    drift: Drift


class Models:
    """All that is served."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        say: Callable[[str], None],
        worker: int = 0,
        workers: int = 1,
    ) -> None:
        self.settings, self.metrics, self._say = settings, metrics, say
        self.deployment = Deployment(settings, worker, say)
        self._workers = workers
        self._told: set[tuple[str, str, str]] = set()
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
        """Look for new bundles from now on."""
        self._watcher.start()

    def close(self) -> None:
        """Stop looking, let go."""
        self._ended.set()
        for versions in self._versions.values():
            for one in versions.values():
                one.line.close()

    def names(self) -> list[str]:
        """Of the models."""
        return list(self._versions)

    def full(self) -> bool:
        """Some line takes no more rows. Asked before every request, so it is written to be quick."""
        for versions in self._versions.values():
            for one in versions.values():
                if one.line.full:
                    return True
        return False

    def fullness(self, name: str) -> str | None:
        """Why a row for the newest version of a model would be refused now; None if it would not."""
        versions = self._versions.get(name)
        if not versions:
            return None
        try:
            versions[max(versions)].line.check()
        except BusyError as error:
            return str(error)
        return None

    def versions(self, name: str) -> list[Version]:
        """Of one model, the newest first.

        Raises:
            HttpError: there is no such model.
        """
        if name not in self._versions:
            raise HttpError(404, f"there is no model {name!r}; there are {', '.join(self.names())}")
        found = self._versions[name]
        return [found[number] for number in sorted(found, reverse=True)]

    def version(self, name: str, number: str | None = None, label: str | None = None) -> Version:
        """One version: a number, or a label: "latest" or "stable" the newest, "previous" the one before.

        Raises:
            HttpError: there is none.
        """
        if number is None and label is None and name in self._versions:
            numbered = self._versions[name]
            return numbered[max(numbered)]
        found = self.versions(name)
        if label is not None:
            places = {"latest": 0, "stable": 0, "previous": 1}
            if places.get(label, len(found)) >= len(found):
                raise HttpError(404, f"model {name!r} has no version with the label {label!r}")
            return found[places[label]]
        for one in found:
            if str(one.number) == number:
                return one
        have = ", ".join(str(one.number) for one in found)
        raise HttpError(404, f"model {name!r} has no version {number!r}; it has {have}")

    def _version(self, name: str, place: Path, mark: Mark) -> Version:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bundle.BundleWarning)  # told below
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
        line = Line(
            predictor.run,
            predictor.engine.row_seconds,
            self.settings.batch,
            self.settings.queue,
            lambda rows, seconds: self.metrics.ran(name, rows, seconds),
        )
        known = predictor.bundle
        try:
            drift = Drift(known.signature.inputs, known.description.get("statistics") or {})
        except (KeyError, TypeError, ValueError, AttributeError):
            raise bundle.BundleError(f"{place} is damaged: its statistics are none") from None
        made = Version(known.version if number is None else number, predictor, line, mark, drift)
        self._say(f"{name}: {predictor.engine}")
        if known.note:
            self._say(f"{name}: {known.note}")
        self.deployment.answers(name, made.number, known)
        return made

    def saw(self, name: str, version: Version, rows: Rows) -> None:
        """Rows of the sample: are they still what the model was trained on? What has changed is told once."""
        if not version.drift:
            return
        version.drift.add(rows.arrays)
        shifts = version.drift.shifts()
        for one in shifts:
            key = (name, one.input, one.of)
            if one.sure and key not in self._told:
                self._told.add(key)
                self._say(f"{name}: {one.line}")
            elif not one.sure:
                self._told.discard(key)
        self.deployment.drifted(name, shifts)

    def drifts(self, name: str) -> list[Shift]:
        """How far the newest version's inputs are from training, as far as this worker has seen."""
        return self.version(name).drift.shifts()

    def drift_text(self, worker: int) -> str:
        """For Prometheus."""
        shifts = [(name, one) for name in self.names() for one in self.drifts(name)]
        if not shifts:
            return ""
        head = (
            "# HELP stoker_drift How far inputs are from the training rows: a mean in deviations, a spread in powers "
            "of two, shares.\n# TYPE stoker_drift gauge\n"
        )
        lines = [
            f'stoker_drift{{model="{name}",input={_quoted(one.input)},of="{one.of}",worker="{worker}"}} '
            f"{one.amount:.6g}\n"
            for name, one in shifts
        ]
        return head + "".join(lines)

    def books(self, name: str) -> tuple[dict[str, float], Facts]:
        """The ledger's accounts of a model, and what advice depends on."""
        predictor = self.version(name).predictor
        known = predictor.bundle
        texts = any(one.dtype == "string" for one in known.signature.inputs)  # which only TensorFlow takes
        settled = texts or bool(known.description.get("engines"))
        return self.metrics.books(name, self.settings, self._workers, predictor.engine.name, settled)

    def _watch(self) -> None:
        while not self._ended.wait(self.settings.reload_s):
            for name, path in self.settings.models.items():
                self.refresh(name, Path(path))

    def _is_worth_trying(self, place: Path, mark: Mark) -> bool:
        """It has not failed, is another one by now, or failed of something that passes."""
        failed, again = self._failed.get(place, (None, 0.0))
        return failed != mark or now() >= again

    def refresh(self, name: str, path: Path) -> None:
        """Take what is there now; on trouble keep what was there before."""
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
        # One step: a request sees the old versions or the new.
        if fresh:
            self._versions[name] = fresh


def _retry_at(error: BaseException) -> float:
    """When a bundle that was not taken is tried again: soon if the disk or the memory failed it, and not the bundle."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError | MemoryError) and not isinstance(cause, FileNotFoundError):
            return now() + _RETRY_S
        cause = cause.__cause__ or cause.__context__
    return math.inf


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def bundles_of(path: Path) -> dict[Path, Mark]:
    """The bundles at a path, with what changes when one is replaced."""
    found = {}
    try:
        places = [path, *(one for one in path.iterdir() if one.name.isdecimal())]
    except OSError:
        return {}  # just now being renamed
    for place in places:
        try:
            state = (place / bundle.DESCRIPTION).stat()
        except OSError:
            continue
        found[place] = (state.st_ino, state.st_mtime_ns, state.st_size)
    return found
