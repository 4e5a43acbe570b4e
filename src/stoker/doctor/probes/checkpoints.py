"""Checkpoints: time spent saving and loading models, by the line that asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import ParamSpec, TypeVar

from stoker.doctor.attach import announced
from stoker.doctor.probes.parts.tallies import CheckpointsPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import CHECKPOINT
from stoker.processors import main_thread_wait_ns
from stoker.tf_internals import Place, saving

P = ParamSpec("P")
T = TypeVar("T")


class Checkpoints(Probe):
    """Times the functions that all of TensorFlow's savers go through, and Keras' own file formats."""

    name = "checkpoint"

    def attach(self) -> None:
        import tensorflow as tf

        self._time(saving.savers(), saving.restorers())
        # Around its saver, it deletes old files and keeps a list of them, which is saving, too.
        self._time([(tf.train.CheckpointManager, "save")], [])
        for what in (announced.SAVE, announced.RESTORE):
            self.on_detach(announced.listen(what, partial(self._charge, what)))

    def attach_to_keras(self) -> None:
        self._time(saving.keras_savers(), saving.keras_restorers())

    def measure(self, ended: bool) -> CheckpointsPart:
        return CheckpointsPart(self.recorder.tallies_of("checkpoint"))

    def _time(self, savers: list[Place], restorers: list[Place]) -> None:
        for name, places in (("save", savers), ("restore", restorers)):
            for place in places:
                self.replace(*place, partial(self._wrap, name))

    def _wrap(self, name: str, original: Callable[P, T]) -> Callable[P, T]:
        def run(*args: P.args, **kwds: P.kwargs) -> T:
            with self._charge(name):
                return original(*args, **kwds)

        return run

    @contextmanager
    def _charge(self, name: str) -> Iterator[None]:
        """Charge the time inside to the account, unless it already goes there."""
        if not self.active or not self.recorder.on_main_thread() or self.recorder.top == CHECKPOINT:
            yield
            return
        waited = main_thread_wait_ns()
        started = self.recorder.enter(CHECKPOINT)
        try:
            yield
        finally:
            self.call_safely(self._count, name, started, self.recorder.leave(), waited)

    def _count(self, name: str, started: int, ended: int, waited: int) -> None:
        site, _ = self.recorder.sites.caller()
        if site is None:
            return
        if self.recorder.window is not None:
            self.recorder.window.label(started, CHECKPOINT, site, name)
        tally = self.recorder.tally("checkpoint", site)
        tally.detail.setdefault("what", name)
        tally.count += 1
        tally.ns += ended - started
        tally.lost_ns += ended - started
        tally.queued_ns += main_thread_wait_ns() - waited
