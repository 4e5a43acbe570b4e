"""A loaded version of a model: its signatures with their queues. A bundle has one; a SavedModel may have several."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from stoker.serve import bundle
from stoker.serve.batching import LoopQueue, Run
from stoker.serve.bundle import SIGNATURE, Bundle, BundleError
from stoker.serve.drift import Drift
from stoker.serve.foreign import places
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.metrics import Metrics
from stoker.serve.plane.served import BundleSignature, ServedSignature
from stoker.serve.plane.settings import ServerSettings
from stoker.serve.predictor import Predictor
from stoker.serve.signature import Field

Mark = tuple[int, ...]
# Calls of a model that nobody has timed run in a thread until they prove quick.
_UNTIMED_S = 1.0
_NO_DRIFT = Drift((), {})


@dataclass(frozen=True)
class Version:
    """A loaded model.

    Attributes:
        number: the version's number.
        path: its directory.
        mark: changes when the directory is replaced.
        signatures: by name.
        engine: the name of the engine that computes the answers.
        drift: how far requests are from the training rows.
        bundle: None for a model that Stoker did not export.
    """

    number: int
    path: Path
    mark: Mark
    signatures: Mapping[str, ServedSignature]
    engine: str
    drift: Drift
    bundle: Bundle | None = None

    def signature(self, name: str = "") -> ServedSignature:
        """Return a signature, the default one if no name is given; raise RequestError if there is none."""
        found = self.signatures.get(name or SIGNATURE)
        if found is None:
            have = ", ".join(self.signatures)
            raise RequestError(
                400, f'Serving signature key "{name or SIGNATURE}" not found; the signatures are {have}'
            )
        return found

    @cached_property
    def inputs(self) -> tuple[Field, ...]:
        """The inputs of the default signature; empty if there is no such signature."""
        usual = self.signatures.get(SIGNATURE)
        return () if usual is None else usual.inputs

    @cached_property
    def only_queue(self) -> LoopQueue | None:
        """The queue in which every request waits; None if there are several."""
        return next(iter(self.signatures.values())).queue if len(self.signatures) == 1 else None

    @property
    def is_slow(self) -> bool:
        """Whether an answer may take long."""
        return any(one.queue.is_slow for one in self.signatures.values())

    @property
    def waiting_rows(self) -> int:
        """The number of rows that wait."""
        return sum(one.queue.rows for one in self.signatures.values())


class VersionLoader:
    """Loads versions from directories."""

    def __init__(self, settings: ServerSettings, metrics: Metrics, say: Callable[[str], None]) -> None:
        self._settings, self._metrics, self._say = settings, metrics, say

    def load(self, name: str, place: Path, mark: Mark, number: int | None) -> Version:
        """Load a model and warm it up.

        Args:
            name: the model's name.
            place: the model's directory.
            mark: the mark of the directory as it is now.
            number: the version's number; None for the model's own.

        Raises:
            BundleError: the model cannot be loaded, or is not trusted.
        """
        if not places.is_foreign_model(place):
            return self._load_bundle(name, place, mark, number)
        if self._settings.trusted_only or self._settings.public_key:
            why = "--trusted-only" if self._settings.trusted_only else "--require-signature"
            raise BundleError(
                f"{place} is not a bundle, and {why} accepts nothing else: export it with stoker export"
            )
        return self._load_foreign(name, place, mark, number)

    def _queue(self, name: str, run: Run, seconds: float) -> LoopQueue:
        settings, metrics = self._settings, self._metrics
        return LoopQueue(
            run,
            seconds,
            settings.batch,
            settings.queue,
            lambda rows, took: metrics.count_call(name, rows, took),
        )

    def _load_bundle(self, name: str, place: Path, mark: Mark, number: int | None) -> Version:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", bundle.BundleWarning)  # reported below
            predictor = Predictor(
                place,
                engine=self._settings.engine or None,
                allow_ops=self._settings.allow_ops,
                require_signature=self._settings.public_key or None,
            )
        predictor.warm()
        known = predictor.bundle
        try:
            drift = Drift(known.signature.inputs, known.description.get("statistics") or {})
        except (KeyError, TypeError, ValueError, AttributeError):
            raise BundleError(f"{place} is damaged: its statistics are invalid") from None
        inputs, outputs = known.signature.inputs, known.signature.outputs
        queue = self._queue(name, predictor.run, predictor.engine.row_seconds)
        signature = BundleSignature(SIGNATURE, inputs, outputs, queue, predictor, name)
        self._say(f"{name}: {predictor.engine}")
        if known.note:
            self._say(f"{name}: {known.note}")
        number = known.version if number is None else number
        return Version(number, place, mark, {SIGNATURE: signature}, predictor.engine.name, drift, known)

    def _load_foreign(self, name: str, place: Path, mark: Mark, number: int | None) -> Version:
        from stoker.serve.foreign import loading, warming
        from stoker.serve.foreign.serving import ForeignSignature
        from stoker.serve.safety.saved_model import outward_operations

        settings = self._settings
        in_litert = places.is_in_litert(place, settings.prefer_litert)
        if in_litert:
            loaded = loading.load_litert(place)
        else:
            loaded = loading.load_saved_model(place, settings.tags)
            outward = outward_operations(place)
            if outward:  # reported but not refused: --trusted-only is for that
                self._say(f"{name}: warning: it can reach outside the model, through {', '.join(outward)}")
        asked = (
            warming.answer_recorded_requests(loaded, place, settings.warm_repeats)
            if settings.warm_repeats
            else {}
        )
        signatures = {}
        for one in loaded:
            joins, seconds = warming.time_and_try_joining(one, asked)
            queue = self._queue(name, one.run, _UNTIMED_S if seconds is None else seconds)
            signatures[one.name] = ForeignSignature(one.name, one.inputs, one.outputs, queue, one, joins)
        together = [one.name for one in signatures.values() if one.joins]
        self._say(
            f"{name}: signatures {', '.join(signatures)}; answers requests together: {', '.join(together) or 'none'}"
        )
        engine = "litert" if in_litert else "threads"
        return Version(1 if number is None else number, place, mark, signatures, engine, _NO_DRIFT)


def models_at(path: Path) -> dict[Path, Mark]:
    """Return the bundles and other models at a path, each with a mark that changes when it is replaced."""
    found = {
        place: read_mark(place / bundle.DESCRIPTION) or places.mark_of(place)
        for place in bundle.list_places(path)
    }
    return {place: mark for place, mark in found.items() if mark}


def read_mark(file: str | Path) -> Mark:
    """Return a mark that changes when a file is replaced; empty if there is no file."""
    try:
        state = os.stat(file)
    except OSError:
        return ()
    return (state.st_ino, state.st_mtime_ns, state.st_size)
