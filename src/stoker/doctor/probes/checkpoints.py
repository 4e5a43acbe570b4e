"""Checkpoints: time spent saving and loading models, by the line that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from stoker.doctor.attach import announced
from stoker.doctor.probes.parts.tallies import CheckpointsPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import CHECKPOINT
from stoker.tf_internals import Place, saving


class Checkpoints(Probe):
    """Times the common ground of TensorFlow's savers, and Keras' own file formats."""

    name = "checkpoint"

    def attach(self) -> None:
        import tensorflow as tf

        self._time(saving.savers(), saving.restorers())
        # Around its saver it deletes old files and keeps a list of them: that is saving, too.
        self._time([(tf.train.CheckpointManager, "save")], [])
        for what in (announced.SAVE, announced.RESTORE):
            self.on_detach(announced.listen(what, partial(self._announced, what)))

    def attach_to_keras(self) -> None:
        self._time(saving.keras_savers(), saving.keras_restorers())

    def measure(self, ended: bool) -> CheckpointsPart:
        return CheckpointsPart(self.recorder.tallies_of("checkpoint"))

    def _time(self, savers: list[Place], restorers: list[Place]) -> None:
        for name, places in (("save", savers), ("restore", restorers)):
            for place in places:
                self.replace(*place, partial(self._saver, name))

    def _saver(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwds: Any) -> Any:
            if not self._counts():
                return original(*args, **kwds)
            started = self.recorder.enter(CHECKPOINT)
            try:
                return original(*args, **kwds)
            finally:
                self._end(name, started)

        return run

    @contextmanager
    def _announced(self, name: str) -> Iterator[None]:
        """Stoker's own saver at work."""
        if not self._counts():
            yield
            return
        started = self.recorder.enter(CHECKPOINT)
        try:
            yield
        finally:
            self._end(name, started)

    def _counts(self) -> bool:
        """Whether time is to be charged here: it is not if it is on the account already."""
        return self.active and self.recorder.on_main_thread() and self.recorder.top != CHECKPOINT

    def _end(self, name: str, started: int) -> None:
        ended = self.recorder.leave()
        try:
            self._count(name, started, ended)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
            self.fail(error)

    def _count(self, name: str, started: int, ended: int) -> None:
        elapsed = ended - started
        site, _ = self.recorder.sites.caller()
        if site is None:
            return
        if self.recorder.window is not None:
            self.recorder.window.label(started, CHECKPOINT, site, name)
        tally = self.recorder.tally("checkpoint", site)
        tally.detail.setdefault("what", name)
        tally.count += 1
        tally.ns += elapsed
        tally.lost_ns += elapsed
