"""Passes the changes of callbacks, which run on the chief alone, on to all workers of a job.

Callbacks write files, print and talk to services, which a job wants only once. They also set rates, restore weights and
ask to stop. After each of their hooks, the workers agree on whether anything changed and, if so, get the chief's
values.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import keras
import numpy as np

from stoker.tf_internals.types import Callback, Variable
from stoker.train.program import TrainingProgram
from stoker.train.workers.copies import ReplicaPart

# Keras' own callbacks that read and write files, or ask to stop, and change no variable.
_READERS = (
    keras.callbacks.CSVLogger,
    keras.callbacks.History,
    keras.callbacks.ModelCheckpoint,
    keras.callbacks.ProgbarLogger,
    keras.callbacks.RemoteMonitor,
    keras.callbacks.TensorBoard,
    keras.callbacks.TerminateOnNaN,
)


class CallbackEffects:
    """Surrounds the hooks of callbacks that may change what is trained."""

    def __init__(self, program: TrainingProgram, callbacks: keras.callbacks.CallbackList) -> None:
        self._program = program
        self._group = program.group
        self._callbacks = callbacks

    @contextmanager
    def share(self, *, last: bool = False) -> Iterator[None]:
        """Pass the chief's changes inside on to all workers; `last` is for the end of training."""
        if self._group.alone:
            yield
            return
        looks = self._group.chief and any(_may_change(one, last) for one in self._callbacks.callbacks)
        before = self._checksums() if looks else None
        yield
        model = self._program.model
        changed = looks and self._checksums() != before
        said = self._group.agree(changed=changed, stop=bool(model.stop_training))
        if said["changed"][0]:
            self._group.broadcast(self._shared_variables())
        model.stop_training = any(said["stop"])

    def _shared_variables(self) -> dict[str, Variable]:
        everything = self._program.state.variables({})
        return {name: one for name, one in everything.items() if not isinstance(one, ReplicaPart)}

    def _checksums(self) -> list[int]:
        variables = self._shared_variables().values()
        return [zlib.crc32(np.ascontiguousarray(one.numpy()).view(np.uint8).data) for one in variables]


def _may_change(callback: Callback, last: bool) -> bool:
    if type(callback) is keras.callbacks.EarlyStopping:
        return last and bool(callback.restore_best_weights)
    return not isinstance(callback, _READERS)
