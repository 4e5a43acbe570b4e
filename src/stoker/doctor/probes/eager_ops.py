"""Eager ops: how many are dispatched one by one, what they take, and the function of the user's that does it.

This is the hottest probe: it counts every op, but looks at the stack only every ten milliseconds.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from stoker import clock
from stoker.doctor.attach.sites import SiteKey
from stoker.doctor.probes.loop_turns import UserFrame
from stoker.doctor.probes.parts.eager import EagerPart
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import DISPATCH, EAGER, MAX_SITES, PYTHON, Placed, Recorder
from stoker.doctor.probes.steps import LAYERS, TAPES, Steps
from stoker.tf_internals import eager

# Between two ops lie TensorFlow's wrappers: dispatch. A longer gap is the program's own Python.
_LIBRARY_GAP_NS = 500_000
_SAMPLE_NS = 25_000_000
# What continues a stretch of eager ops in a window.
_STRETCH = (DISPATCH, EAGER)


@dataclass
class Dispatched(Placed):
    """What one stack of the user's frames dispatched.

    Attributes:
        samples: how often it was found there.
    """

    ops: int = 0
    ns: int = 0
    samples: int = 0


class EagerOps(Probe):
    """Counts ops of the main thread and samples whose they are."""

    name = "eager ops"

    def __init__(self, recorder: Recorder, steps: Steps) -> None:
        super().__init__(recorder)
        self._steps = steps
        self.count = 0
        # Whole time of dispatching, and the part inside the ops.
        self.ns = 0
        self.op_ns = 0
        # What was dispatched, by the stack of the user's frames that was found there.
        self.stacks: dict[tuple[UserFrame, ...], Dispatched] = {}
        # The last tape, and when it was opened.
        self._tape_site: SiteKey | None = None
        self._tape_since = 0
        # Those that were recording when the last one was opened, and that one.
        self._tapes: list[weakref.ref[Any]] = []
        self._sampled_count = 0
        self._sampled_ns = 0
        self._next_sample = 0

    def attach(self) -> None:
        import tensorflow as tf

        self.replace(*eager.op_dispatch(), self._dispatch)
        self.replace(tf.GradientTape, "__enter__", self._tape)
        self.replace(tf.GradientTape, "gradient", self.dispatching)

    def measure(self, ended: bool) -> EagerPart:
        stacks = {stack: replace(found) for stack, found in list(self.stacks.items())}
        return EagerPart(self.count, self.ns, self.op_ns, stacks, self.recorder.tallies_of("tape"))

    def _dispatch(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder, now = self.recorder, clock.now_ns
        totals = recorder.totals
        get_ident, main_thread = threading.get_ident, recorder.main_thread

        def execute(*args: Any) -> Any:
            top = recorder.top
            # Ops inside a span (the next batch, a checkpoint, a read) belong to that span.
            if (top != PYTHON and top != DISPATCH) or get_ident() != main_thread:
                return original(*args)
            started = now()
            gap = started - recorder.since
            if gap < _LIBRARY_GAP_NS:
                totals[DISPATCH] += gap
            else:
                totals[top] += gap
                if top != DISPATCH:
                    gap = 0
            # A stretch of ops and the library's Python between them is one span.
            stretch_from = started
            if gap or top == DISPATCH:
                stretch_from = recorder.since
            elif recorder.window is not None:
                recorder.window.add(recorder.since, started, PYTHON)
            recorder.since = started
            recorder.top = EAGER
            if not recorder.first_dispatch_ns:
                recorder.first_dispatch_ns = started
            try:
                return original(*args)
            finally:
                ended = now()
                totals[EAGER] += ended - recorder.since
                if recorder.window is not None:
                    # Something inside the op may have been a span of its own.
                    begun = stretch_from if recorder.since == started else recorder.since
                    recorder.window.add(begun, ended, EAGER, _STRETCH)
                recorder.since = ended
                recorder.top = top
                self.count += 1
                self.op_ns += ended - started
                self.ns += ended - started + gap
                if ended > self._next_sample:
                    self._sample(ended)

        return execute

    def _sample(self, now: int) -> None:
        """Charge what was dispatched since the last sample to the lines that dispatch now."""
        self._next_sample = now + _SAMPLE_NS
        try:
            stack = self._steps.turns.stack()
            if stack and (stack in self.stacks or len(self.stacks) < MAX_SITES):
                found = self.stacks.get(stack)
                if found is None:
                    found = self.stacks[stack] = Dispatched()
                found.ops += self.count - self._sampled_count
                found.ns += self.ns - self._sampled_ns
                found.samples += 1
                self.recorder.place(found)
            self._sampled_count, self._sampled_ns = self.count, self.ns
        except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
            self.fail(error)

    def dispatching(
        self, original: Callable[..., Any], ended: Callable[[int, tuple[Any, ...]], None] | None = None
    ) -> Callable[..., Any]:
        """Wrap library code that dispatches ops: all of its own Python is dispatch, however long the gaps."""
        recorder = self.recorder

        def run(*args: Any, **kwds: Any) -> Any:
            if recorder.top != PYTHON or not self.active or not recorder.on_main_thread():
                return original(*args, **kwds)
            recorder.enter(DISPATCH)
            try:
                return original(*args, **kwds)
            finally:
                at = recorder.leave()
                if ended is not None:
                    ended(at, args)

        return run

    def _name_spans(self, tape: SiteKey | None) -> None:
        """What was dispatched since the last tape is that tape's step; from here on it is this one's."""
        window = self.recorder.window
        if window is not None and self._tape_site is not None:
            window.label(self._tape_since, EAGER, self._tape_site, "tape")
        self._tape_site, self._tape_since = tape, self.recorder.since

    def layer(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the call of a layer or model: dispatch, and the outermost one is an event of the user's loop."""
        import keras

        def ended(at: int, args: tuple[Any, ...]) -> None:
            try:
                given = args[1] if len(args) > 1 else None
                if isinstance(given, (list, tuple)) and given:
                    given = given[0]
                # A model that is put together runs nothing.
                if not self._steps.keras_depth and not isinstance(given, keras.KerasTensor):
                    self._steps.event(LAYERS, "layer", at)
            except Exception as error:  # noqa: BLE001 - as above
                self.fail(error)

        return self.dispatching(original, ended)

    def _opened_inside(self, tape: Any) -> bool:
        """Whether a tape is opened while another one records: both are of one step."""
        self._tapes = [one for one in self._tapes if (it := one()) is not None and eager.is_recording(it)]
        self._tapes.append(weakref.ref(tape))
        return len(self._tapes) > 1

    def _tape(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def enter(tape: Any) -> Any:
            if self.active and self.recorder.top in (PYTHON, DISPATCH) and self.recorder.on_main_thread():
                try:
                    stack = self._steps.turns.stack(1)
                    inside = self._opened_inside(tape)
                    if not inside:
                        self._name_spans(stack[0].site if stack else None)
                    for key, loops in stack:
                        tally = self.recorder.tally("tape", key)
                        tally.count += 1
                        tally.detail["inside"] = tally.detail.get("inside", 0) + inside
                        tally.detail.setdefault("loop", loops[0] if loops else None)
                        if not self._steps.keras_depth:
                            self._steps.event(TAPES, key, self.recorder.since)
                except Exception as error:  # noqa: BLE001 - as above
                    self.fail(error)
            return original(tape)

        return enter
