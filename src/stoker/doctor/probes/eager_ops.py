"""Eager ops: how many are dispatched one by one, how long that takes, and which of the user's functions does it.

This is the hottest probe. It counts every op, but looks at the stack only every 25 milliseconds.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ParamSpec, TypeVar

from stoker import clock
from stoker.doctor.attach.sites import USER, SiteKey
from stoker.doctor.probes.loop_turns import UserFrame
from stoker.doctor.probes.parts.eager import SAMPLE_S, EagerPart
from stoker.doctor.probes.probe import Growing, Probe
from stoker.doctor.probes.recorder import DISPATCH, EAGER, MAX_SITES, PAUSED, PYTHON, Placed, Recorder
from stoker.doctor.probes.steps import LAYERS, TAPES, Steps
from stoker.tf_internals import eager
from stoker.tf_internals.types import GradientTape

P = ParamSpec("P")
T = TypeVar("T")
# A short gap between two ops is TensorFlow's own Python, which is dispatch. A longer gap is the program's.
_LIBRARY_GAP_NS = 500_000
_SAMPLE_NS = int(SAMPLE_S * 1e9)
# The accounts that continue a stretch of eager ops in a window.
_STRETCH = (DISPATCH, EAGER)


@dataclass
class Dispatched(Placed):
    """The ops that a stack of the user's frames dispatched."""

    ops: int = 0
    ns: int = 0
    # How many times a sample found this stack.
    samples: int = 0


class EagerOps(Probe):
    """Counts the main thread's ops and samples which lines they belong to."""

    name = "eager ops"

    def __init__(self, recorder: Recorder, steps: Steps) -> None:
        super().__init__(recorder)
        self._steps = steps
        self.count = 0
        # The number of tapes opened.
        self.tapes = 0
        self.ns = 0
        self.op_ns = 0
        self.stacks: dict[tuple[UserFrame, ...], Dispatched] = {}
        # The last tape opened outside others, and when.
        self._tape_site: SiteKey | None = None
        self._tape_since = 0
        # The tapes that recorded when the last one was opened, and the last one itself.
        self._tapes: list[weakref.ref[GradientTape]] = []
        self._sampled_count = 0
        self._sampled_ns = 0
        self._next_sample = 0

    def attach(self) -> None:
        import tensorflow as tf

        self.replace(*eager.op_dispatch(), self._dispatch, pausable=True)
        self.replace(tf.GradientTape, "__enter__", self._tape)
        self.replace(tf.GradientTape, "gradient", self.wrap_dispatch, pausable=True)
        for place in eager.variable_updates():
            self.replace(*place, self._update)

    def resume(self) -> None:
        super().resume()
        # The next sample must not count what a pause has added.
        self._sampled_count, self._sampled_ns = self.count, self.ns

    def list_growing(self) -> Iterable[Growing]:
        yield self, ("count",), ("ns", "op_ns")
        for found in list(self.stacks.values()):
            yield found, ("ops", "samples", "between"), ("ns",)
        yield from self.list_growing_tallies("tape")

    def measure(self, ended: bool) -> EagerPart:
        stacks = {stack: replace(found) for stack, found in list(self.stacks.items())}
        return EagerPart(self.count, self.ns, self.op_ns, stacks, self.recorder.tallies_of("tape"))

    def _dispatch(self, original: Callable[..., T]) -> Callable[..., T]:
        recorder, now = self.recorder, clock.now_ns
        totals = recorder.totals
        get_ident, main_thread = threading.get_ident, recorder.main_thread

        def execute(*args: object) -> T:
            top = recorder.top
            # Ops inside a span (the next batch, a checkpoint, a read) belong to that span.
            if (top != PYTHON and top != DISPATCH) or get_ident() != main_thread:
                if not recorder.has_ended_pause():
                    return original(*args)
                top = recorder.top
            started = now()
            gap = started - recorder.since
            if gap < _LIBRARY_GAP_NS:
                totals[DISPATCH] += gap
            else:
                totals[top] += gap
                if top != DISPATCH:
                    gap = 0
            # A stretch of ops, with the library's Python between them, is one span.
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
                    self._next_sample = ended + _SAMPLE_NS
                    self.call_safely(self._sample)

        return execute

    def _sample(self) -> None:
        """Charge what was dispatched since the last sample to the lines that dispatch now."""
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

    def wrap_dispatch(
        self, original: Callable[P, T], count: Callable[[int, tuple[object, ...]], None] | None = None
    ) -> Callable[P, T]:
        """Wrap library code that dispatches ops. All of the code's own Python is dispatch, however long the gaps.

        At the end, `count` is called with the time and the arguments.
        """
        recorder = self.recorder

        def run(*args: P.args, **kwds: P.kwargs) -> T:
            if recorder.top == PAUSED:
                recorder.has_ended_pause()
            if recorder.top != PYTHON or not self.active or not recorder.on_main_thread():
                return original(*args, **kwds)
            recorder.enter(DISPATCH)
            try:
                return original(*args, **kwds)
            finally:
                ended = recorder.leave()
                if count is not None:
                    self.call_safely(count, ended, args)

        return run

    def _name_spans(self, tape: SiteKey | None) -> None:
        """Name what was dispatched since the last tape after that tape. What follows belongs to this tape."""
        window = self.recorder.window
        if window is not None and self._tape_site is not None:
            window.label(self._tape_since, EAGER, self._tape_site, "tape")
        self._tape_site, self._tape_since = tape, self.recorder.since

    def layer(self, original: Callable[P, T]) -> Callable[P, T]:
        """Wrap the call of a layer or model: it is dispatch, and an outermost call is an event of the user's loop."""
        import keras

        def count(ended: int, args: tuple[object, ...]) -> None:
            given = args[1] if len(args) > 1 else None
            if isinstance(given, (list, tuple)) and given:
                given = given[0]
            # Building a model runs nothing.
            if not self._steps.keras_depth and not isinstance(given, keras.KerasTensor):
                self._steps.event(LAYERS, "layer", ended)

        return self.wrap_dispatch(original, count)

    def _update(self, original: Callable[P, T]) -> Callable[P, T]:
        """Wrap an update of a variable by the user's code: a loop that only updates variables has steps, too."""
        recorder, steps = self.recorder, self._steps

        def run(*args: P.args, **kwds: P.kwargs) -> T:
            result = original(*args, **kwds)
            if recorder.top == PYTHON and self.active and not steps.trains_or_calls and not steps.keras_depth:
                self.call_safely(self._count_update, sys._getframe(1).f_code.co_filename)
            return result

        return run

    def _count_update(self, file: str) -> None:
        if self.recorder.sites.kind_of(file) == USER and self.recorder.on_main_thread() and eager.is_eager():
            self._steps.event(LAYERS, "update", clock.now_ns())

    def _is_nested(self, tape: GradientTape) -> bool:
        """Return whether a tape is opened while another one records. Both then belong to one step."""
        self._tapes = [one for one in self._tapes if (it := one()) is not None and eager.is_recording(it)]
        self._tapes.append(weakref.ref(tape))
        return len(self._tapes) > 1

    def _tape(self, original: Callable[[GradientTape], T]) -> Callable[[GradientTape], T]:
        recorder = self.recorder

        def enter(tape: GradientTape) -> T:
            if self.active and recorder.top in (PYTHON, DISPATCH, PAUSED) and recorder.on_main_thread():
                self.tapes += 1
                if recorder.top != PAUSED:
                    self.call_safely(self._count_tape, tape)
                elif recorder.is_due:
                    # The pause counts this step, because it contains what comes before the step.
                    recorder.on_wake()
            return original(tape)

        return enter

    def _count_tape(self, tape: GradientTape) -> None:
        stack = self._steps.turns.stack(1)
        nested = self._is_nested(tape)
        if not nested:
            self._name_spans(stack[0].site if stack else None)
        for key, loops in stack:
            tally = self.recorder.tally("tape", key)
            tally.count += 1
            tally.detail["inside"] = tally.detail.get("inside", 0) + nested
            tally.detail.setdefault("loop", loops[0] if loops else None)
            if not self._steps.keras_depth:
                self._steps.event(TAPES, key, self.recorder.since)
