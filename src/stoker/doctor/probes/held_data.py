"""Data that the program holds without need: lists of tensors that grow, arrays twice in memory, graphs' constants.

The probe works on any device. The heartbeat's thread looks at what the program's names lead to: often at first, then
less and less often as long as nothing grows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from stoker import clock
from stoker.doctor.attach.sites import SiteKey
from stoker.doctor.memory.constants import large_constants
from stoker.doctor.memory.copies import LARGE_BYTES, CopyWatch
from stoker.doctor.memory.growing import GrowthWatch
from stoker.doctor.memory.held import GraphConstant
from stoker.doctor.memory.slots import SlotWatch
from stoker.doctor.probes.parts.held import HeldPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import Recorder
from stoker.tf_internals import keras_optimizers
from stoker.tf_internals.types import CallbackList, ConcreteFunction, Optimizer, Tensor, TensorLike, Variable

# Looks are at least this far apart, in steps and in time, and take at most this share of the time.
_MIN_STEPS = 5
_FIRST_PAUSE_S, _GROWING_PAUSE_S, _MAX_PAUSE_S = 0.1, 0.5, 20.0
_SHARE = 0.01
_MAX_CONSTANTS = 100


class HeldData(Probe):
    """Looks at the program's data from time to time. Other probes report each conversion and each trace to it."""

    name = "held data"

    def __init__(self, recorder: Recorder, steps: Callable[[], int]) -> None:
        super().__init__(recorder)
        self._steps = steps
        self._growth = GrowthWatch(recorder.sites, steps)
        self._copies = CopyWatch(steps)
        self._slots = SlotWatch()
        self._constants: dict[tuple[SiteKey, tuple[int, ...]], GraphConstant] = {}
        self._pause_s = _FIRST_PAUSE_S
        self._next_ns = 0
        self._looks = 0

    def attach_to_keras(self) -> None:
        import keras

        self.replace(*keras_optimizers.variable_tracking(), self._tracking)
        self.replace(keras.callbacks.CallbackList, "__init__", self._callback_list)

    def poll(self) -> None:
        due = clock.real_ns() >= self._next_ns and self._steps() - self._growth.looked_at >= _MIN_STEPS
        if self.active and due:
            self.call_safely(self._look)

    def measure(self, ended: bool) -> HeldPart:
        if ended and self.active and self._steps() - self._growth.looked_at >= _MIN_STEPS:
            # A program may end before the second look.
            self.call_safely(self._look)
        return HeldPart(
            list(self._growth.growing.values()),
            list(self._copies.repeated.values()),
            list(self._constants.values()),
            list(self._slots.frozen.values()),
            list(self._copies.on_device.values()),
        )

    def note_tensor(self, tensor: Tensor, value: TensorLike, size: int) -> None:
        """Remember a large array that was copied."""
        if self.active and size >= LARGE_BYTES and hasattr(value, "__array_interface__"):
            self.call_safely(self._copies.note, value, tensor, self.recorder.sites.caller()[0])

    def note_trace(self, concrete: ConcreteFunction) -> None:
        """Look for the large constants of a graph that was just built."""
        if self.active:
            self.call_safely(self._find_constants, concrete)

    def _find_constants(self, concrete: ConcreteFunction) -> None:
        for made in large_constants(concrete.graph, self.recorder.sites):
            known = self._constants.get((made.site, made.shape))
            if known is not None:
                made = replace(made, graphs=known.graphs + 1)
            if len(self._constants) < _MAX_CONSTANTS:
                self._constants[made.site, made.shape] = made

    def _callback_list(self, original: Callable[..., None]) -> Callable[..., None]:
        def init(callbacks: CallbackList, *args: object, **kwds: object) -> None:
            original(callbacks, *args, **kwds)
            if self.active:
                for callback in callbacks.callbacks:
                    self.call_safely(self._growth.note, callback)

        return init

    def _tracking(
        self, original: Callable[[Optimizer, Variable], None]
    ) -> Callable[[Optimizer, Variable], None]:
        def track(optimizer: Optimizer, variable: Variable) -> None:
            original(optimizer, variable)
            if self.active and not self._slots.is_known(optimizer):
                self.call_safely(self._slots.note, optimizer, self.recorder.sites.caller()[0])

        return track

    def _look(self) -> None:
        began = time.thread_time()
        self._growth.look()
        self._copies.look()
        self._slots.look()
        cost = time.thread_time() - began
        self._looks += 1
        self._pause_s = min(_MAX_PAUSE_S, self._pause_s * 2) if not self._growth.growing else _GROWING_PAUSE_S
        # The first look also learns which modules are the program's.
        least_s = cost / _SHARE if self._looks > 1 else 0.0
        self._next_ns = clock.real_ns() + int(max(self._pause_s, least_s) * 1e9)
