"""Recording a step: every eager op with its inputs and outputs, the reads, and the host data that the step is fed.

A recording takes two steps. The first one only shows which variables a step uses; their values are kept at its end. The
second step is recorded. So its results can be computed again from the state that it began with.

This module is imported before the program starts, so it imports little, and never TensorFlow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, TypeVar

from stoker.doctor.attach.buffer_slot import BufferPatch
from stoker.doctor.attach.patching import Patches
from stoker.doctor.attach.sites import USER, SiteKey, Sites
from stoker.doctor.experiments.marking import Marking, is_marked_tick
from stoker.doctor.experiments.recorded_step import (
    Conversion,
    Event,
    RecordedFeed,
    RecordedOp,
    RecordedRead,
    RecordedStep,
    read_variables,
    tensor_bytes,
)
from stoker.tf_internals import eager, graphs, recorded_ops

if TYPE_CHECKING:
    from stoker.doctor.probes.recorder import Recorder
    from stoker.doctor.probes.steps import StepCount, Steps
    from stoker.tf_internals.recorded_ops import Attributes
    from stoker.tf_internals.types import Tensor

# The steps of a source to record, counted from its first: one early, for short runs, and one later, when all is warm.
_RECORDED_TICKS = frozenset({4, 40})
# A longer "step" is a whole epoch, and recording that would slow the program down.
_MAX_OPS = 6000
_MAX_FRAMES = 12
# How much memory all recordings together may keep alive.
MAX_BYTES = 512 * 2**20


T = TypeVar("T")


class StepRecorder:
    """Records a step of each source of steps, at most twice, while the program runs."""

    def __init__(self, steps: Steps, recorder: Recorder) -> None:
        self.recorded: dict[object, RecordedStep] = {}
        self._steps = steps
        self._sites = recorder.sites
        self._note = recorder.note
        self._totals = recorder.totals
        self._current: _Watch | None = None
        # The marking of the current step, and its source; and the ticks at which recordings ended.
        self._marking: Marking | None = None
        self._marked: object = None
        self._recorded_at: dict[object, int] = {}

    def step_ended(self, count: StepCount) -> None:
        """Handle the end of a step of any source; called on the main thread."""
        try:
            if self._marking is not None and count.source == self._marked:
                marked, self._marking = self._marking.end(), None
                if marked is not None:
                    self.recorded[self._marked].marks.append(marked)
            if self._current is None:
                if count.ticks in _RECORDED_TICKS and self._is_reported(count):
                    self._stop_marking()
                    self._begin(_Scout(self._sites))
                    self._source = count.source
                elif count.source in self.recorded:
                    self._mark_next(count)
            elif count.source == self._source:
                self._watch_next(count)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
            self._fail(error)

    def is_recording(self) -> bool:
        """Return whether a step is being recorded or marked: the patches for that lie on top of the probes' patches."""
        return self._current is not None or self._marking is not None

    def _is_reported(self, count: StepCount) -> bool:
        return eager.has_started() and any(one is count for one in self._steps.reported())

    def _begin(self, watch: _Watch) -> None:
        if watch.begin():
            self._current = watch

    def _mark_next(self, count: StepCount) -> None:
        """Mark the step that begins, if its turn has come."""
        if self._marking is None and is_marked_tick(count.ticks, self._recorded_at[count.source]):
            marks = self.recorded[count.source].marks
            before = marks[-1] if marks else None
            self._marking, self._marked = Marking(count.ticks, self._totals, before), count.source
            self._marking.begin()

    def _stop_marking(self) -> None:
        if self._marking is not None:
            self._marking.end()
            self._marking = None

    def _watch_next(self, count: StepCount) -> None:
        """After a watched step, record the next one, or keep what was recorded."""
        watch, self._current = self._current, None
        if watch is None:
            return
        watch.end()
        if isinstance(watch, _Scout):
            if not watch.too_much:
                self._record(watch)
        elif isinstance(watch, _Recording) and not watch.too_much:
            step = watch.step
            step.held = _held_outside(step)
            calls = (op.name for op in step.ops() if graphs.definition(op.name) is None)
            step.functions = recorded_ops.gather_functions(calls)
            step.after = read_variables(handle for handle, _ in step.before)
            self.recorded[self._source] = step
            self._recorded_at[self._source] = count.ticks
            self._mark_next(count)

    def _record(self, scout: _Scout) -> None:
        # Drop the last recording of this source first, so that only one step's tensors are kept alive.
        self.recorded.pop(self._source, None)
        step = RecordedStep(self._source, before=read_variables(scout.handles.values()))
        others = sum(one.nbytes for one in self.recorded.values())
        room = MAX_BYTES - others - sum(tensor_bytes(value) for _, value in step.before) * 2
        self._begin(_Recording(self._sites, step, room))

    def stop(self) -> None:
        """Stop watching: the program has ended."""
        self._stop_marking()
        if self._current is not None:
            self._current.end()
            self._current = None

    def _fail(self, error: Exception) -> None:
        self._steps.on_step_end = None
        self.recorded.clear()
        self.stop()
        self._note(f"steps could not be recorded ({type(error).__name__}: {error}); prices are modelled")


class _Watch(Patches):
    """Watches the ops of one step."""

    def __init__(self, sites: Sites) -> None:
        super().__init__()
        self._sites = sites
        self._end: Callable[[], None] | None = None
        self._ops = 0
        self.too_much = False

    def begin(self) -> bool:
        """Start watching; return False if another watcher of ops is active."""
        self._end = recorded_ops.watch_ops(self._op_ended)
        if self._end is None:
            return False
        self.attach()
        return True

    def end(self) -> None:
        """Stop watching."""
        self.detach()
        if self._end is not None:
            self._end()
            self._end = None

    def attach(self) -> None:
        """Patch nothing more: watching ops is enough."""

    def _op_ended(
        self, name: str, inputs: Sequence[Tensor], attributes: Attributes, outputs: Sequence[Tensor]
    ) -> None:
        self._ops += 1
        if self._ops > _MAX_OPS:
            self.give_up()
        if not self.too_much:
            self.note_op(name, inputs, attributes, outputs)

    def give_up(self) -> None:
        """Stop recording a step that is too long or too large."""
        self.too_much = True

    def note_op(
        self, name: str, inputs: Sequence[Tensor], attributes: Attributes, outputs: Sequence[Tensor]
    ) -> None:
        """Note an op that has run."""
        raise NotImplementedError

    def _stack(self) -> tuple[SiteKey, ...]:
        """Return the user's lines on the stack, innermost first, including those around Keras' loops."""
        found: list[SiteKey] = []
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and len(found) < _MAX_FRAMES:
            if self._sites.kind_of(frame.f_code.co_filename) == USER:
                found.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
            frame = frame.f_back
        return tuple(found)


class _Scout(_Watch):
    """Finds the variables that a step uses."""

    def __init__(self, sites: Sites) -> None:
        super().__init__(sites)
        self.handles: dict[int, Tensor] = {}

    def note_op(
        self, name: str, inputs: Sequence[Tensor], attributes: Attributes, outputs: Sequence[Tensor]
    ) -> None:
        """Keep the handles that the op was given."""
        for tensor in inputs:
            if tensor.dtype.name == "resource":
                self.handles.setdefault(id(tensor), tensor)


class _Recording(_Watch):
    """Records a step."""

    def __init__(self, sites: Sites, step: RecordedStep, room: int) -> None:
        super().__init__(sites)
        self.step = step
        self._room = room

    def attach(self) -> None:
        """Patch the places that reads and feeds pass through, because they are not ops."""
        tensor = eager.tensor_type()
        self.replace(*eager.tensor_read(), self._reader)
        buffer = BufferPatch(tensor, self._reader)
        buffer.put_in()
        self.on_detach(buffer.take_out)
        self.replace(*eager.host_conversion(), self._converter)

    def give_up(self) -> None:
        """Release everything."""
        super().give_up()
        self.step = RecordedStep(None)

    def note_op(
        self, name: str, inputs: Sequence[Tensor], attributes: Attributes, outputs: Sequence[Tensor]
    ) -> None:
        """Keep the op and its tensors."""
        number = self.step.number
        op = RecordedOp(
            name,
            tuple(number(tensor) for tensor in inputs),
            attributes,
            tuple(number(tensor) for tensor in outputs),
            self._stack(),
            self.step.count,
        )
        self.step.count += 1
        self._add(op)

    def _add(self, event: Event) -> None:
        self.step.events.append(event)
        if self.step.nbytes > self._room:
            self.give_up()

    def _reader(self, original: Callable[..., T]) -> Callable[..., T]:
        def read(tensor: Tensor, *args: object) -> T:
            value = original(tensor, *args)
            if self.active and not self.too_much:
                self._add(RecordedRead(self.step.number(tensor), self._stack()))
            return value

        return read

    def _converter(self, original: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def convert(value: object, context: object, dtype: object = None) -> Tensor:
            tensor = original(value, context, dtype)
            if self.active and not self.too_much:
                again = Conversion(original, value, context, dtype)
                self._add(RecordedFeed(self.step.number(tensor), again, self._stack(), _is_plain(value)))
            return tensor

        return convert


def _is_plain(value: object) -> bool:
    return type(value).__module__ in ("numpy", "builtins")


def _held_outside(step: RecordedStep) -> frozenset[int]:
    """Return the numbers of the step's tensors that something besides the recording holds."""
    # Two references are our own: the one in the list of all values, and the argument of `getrefcount`.
    ours, values = 2, step.values
    return frozenset(number for number in range(len(values)) if sys.getrefcount(values[number]) > ours)
