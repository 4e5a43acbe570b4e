"""Keras: what `fit`, `evaluate` and `predict` spend their time on, callback by callback, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from stoker import clock
from stoker.doctor.attach import announced
from stoker.doctor.attach.patching import mark_as_framework
from stoker.doctor.attach.sites import USER, SiteKey, definition
from stoker.doctor.probes.eager_ops import EagerOps
from stoker.doctor.probes.graph_calls import leading_dimension
from stoker.doctor.probes.input_wait import batch_size
from stoker.doctor.probes.parts.keras import KerasPart
from stoker.doctor.probes.probe import Growing, Probe
from stoker.doctor.probes.recorder import CHECKPOINT, DISPATCH, GRAPH, PAUSED, PYTHON, SYNC, Recorder
from stoker.doctor.probes.retrace import nbytes_of
from stoker.doctor.probes.steps import EAGER_TRAINING, INFERENCE, TRAINING, StepCount, Steps
from stoker.processors import main_thread_wait_ns
from stoker.tf_internals import keras_optimizers
from stoker.tf_internals.types import Callback, CallbackList, EpochIterator, Model, Optimizer

T = TypeVar("T")
_MOST_EPOCHS = 1000
# A callback's waits for a processor are measured in its first calls, this many, and later in one call of as many.
_SAMPLED_CALLS = 32
_BATCH_HOOKS = tuple(
    f"on_{phase}batch_{moment}"
    for phase in ("", "train_", "test_", "predict_")
    for moment in ("begin", "end")
)
_EPOCH_HOOKS = (
    "on_epoch_begin",
    "on_epoch_end",
    "on_train_begin",
    "on_train_end",
    "on_test_begin",
    "on_test_end",
)


@dataclass
class CallbackTime:
    """One hook of one callback class."""

    class_name: str
    hook: str
    site: SiteKey | None
    # Whether it is defined in the user's own files.
    own: bool
    calls: int = 0
    ns: int = 0
    # Whether it calls `predict` or another loop of Keras.
    runs_loops: bool = False
    # Time of reads and checkpoints inside the hook, which are findings of their own.
    elsewhere_ns: int = 0
    # The time of some of its calls, and how long they waited for a processor.
    sampled_ns: int = 0
    waited_ns: int = 0

    @property
    def is_sampled(self) -> bool:
        """Whether the next call is one of the sampled ones."""
        return self.calls < _SAMPLED_CALLS or not self.calls % _SAMPLED_CALLS

    @property
    def waited_share(self) -> float:
        """The share of the sampled time in which the hook waited for a processor."""
        return min(1.0, self.waited_ns / self.sampled_ns) if self.sampled_ns else 0.0


@dataclass
class PredictCalls:
    """Calls of `predict` from one line."""

    calls: int = 0
    rows: int = 0
    ns: int = 0
    graph_ns: int = 0
    # Calls whose rows are a part of a larger array, so that the other rows already existed.
    from_arrays: int = 0


@dataclass
class FitCalls:
    """Calls of `fit` and `evaluate` from one line: their whole time, with Keras' own Python and the graphs in it."""

    calls: int = 0
    ns: int = 0
    dispatch_ns: int = 0
    graph_ns: int = 0


@dataclass(frozen=True)
class EpochLogs:
    """The logs that `fit` reported at the end of an epoch."""

    epoch: int
    step: int
    values: dict[str, float]


@dataclass
class _Progress:
    """What one running loop has done: `predict` in a callback of `fit` is a loop inside another."""

    batch_size: int = 0
    # The number of the batch at which the current execution began, and that of the last finished batch.
    begin: int = 0
    last: int = -1
    batches: int = 0
    # How many batches an epoch has: 0 if unknown; None before the loop has its iterator.
    epoch_batches: int | None = None


class KerasLoop(Probe):
    """Follows Keras' loops on the main thread."""

    name = "keras"

    def __init__(self, recorder: Recorder, steps: Steps, eager: EagerOps) -> None:
        super().__init__(recorder)
        self._eager = eager
        self.callbacks: dict[tuple[str, str], CallbackTime] = {}
        self.predicts: dict[SiteKey, PredictCalls] = {}
        self.fits: dict[SiteKey, FitCalls] = {}
        self.epochs: list[EpochLogs] = []
        self._trained = 0
        # How many loops of Stoker's trainer are open. Those keep their values themselves.
        self._own_loops = 0
        self._steps = steps
        self._progress = _Progress()
        self._loops_run = 0
        self._wrapped: set[type] = set()
        self._before_call: list[int] = []
        self._call_began = 0
        # The size of the variables that an eager optimizer updates.
        self.variable_bytes = 0
        # Called with True when an evaluation begins, and with False when it ends.
        self.on_evaluation: Callable[[bool], None] = lambda begins: None

    def attach_to_keras(self) -> None:
        import keras

        from stoker.tf_internals import keras_training

        loops = keras_training.TensorFlowTrainer
        for name in ("fit", "evaluate", "predict"):
            # Below Keras' traceback filter, if it has one here.
            self.replace(loops, name, partial(_refilter, keras_training.filter_traceback, self._loop, name))
        self.replace(*keras_training.epoch_iterator_creation(), self._epoch_iterator)
        callbacks = keras.callbacks.CallbackList
        self.replace(callbacks, "__init__", self._callback_list)
        for phase in ("train", "test", "predict"):
            self.replace(callbacks, f"on_{phase}_batch_begin", self._batch_begin, pausable=True)
        self.replace(callbacks, "on_train_batch_end", partial(self._batch_end, TRAINING, "fit"))
        self.replace(callbacks, "on_test_batch_end", partial(self._batch_end, INFERENCE, "evaluate"))
        self.replace(callbacks, "on_predict_batch_end", partial(self._batch_end, INFERENCE, "predict"))
        # Not the list's hook, which still has tensors, and turns them into numbers for its callbacks.
        self.replace(keras.callbacks.History, "on_epoch_end", self._epoch_end)
        self.replace(*keras_optimizers.application(), self._apply, pausable=True)
        self.replace(*keras_optimizers.application(), self._eager.wrap_dispatch, pausable=True)
        self.replace(keras.layers.Layer, "__call__", self._eager.layer, pausable=True)
        self.on_detach(announced.listen(announced.LOOP, self._enter_loop))
        self.on_detach(announced.listen(announced.BATCHES, self._add_batches))

    def list_growing(self) -> Iterable[Growing]:
        return [(entry, ("calls",), ("ns", "elsewhere_ns")) for entry in list(self.callbacks.values())]

    def measure(self, ended: bool) -> KerasPart:
        callbacks = list(self.callbacks.values())
        return KerasPart(
            callbacks, dict(self.predicts), dict(self.fits), self.variable_bytes, list(self.epochs)
        )

    def join_call(self) -> None:
        """Enter a `fit` that began before one of its callbacks attached the probe."""
        site, _ = self.recorder.sites.caller()
        if site is not None:
            # From now on, findings know that this line calls `fit`.
            self.fits.setdefault(site, FitCalls())
        self._before_call = list(self.recorder.totals)
        self.join()
        self._call_began = self.recorder.since

    def leave_call(self) -> None:
        """Leave what `join_call` entered, and count the call."""
        self.leave()
        elapsed = self.recorder.since - self._call_began
        self.call_safely(self._count, "fit", None, self._before_call, self._call_began, elapsed)

    def join(self) -> None:
        """Enter a loop."""
        self.recorder.on_wake()
        self._steps.keras_depth += 1
        self.recorder.enter(DISPATCH)

    def leave(self) -> None:
        """Leave what `join` entered."""
        self.recorder.on_wake()
        self.recorder.leave()
        self._steps.keras_depth -= 1

    @contextmanager
    def _enter_loop(self, batch_size: int) -> Iterator[None]:
        """Enter a loop of Stoker's trainer. Its batch hooks report the steps, perhaps several at once."""
        if not self.active or not self.recorder.on_main_thread():
            yield
            return
        outside, self._progress = self._progress, _Progress(batch_size)
        self._own_loops += 1
        self.join()
        try:
            yield
        finally:
            self.leave()
            self._own_loops -= 1
            self._progress = outside

    @contextmanager
    def _add_batches(self, batches: int) -> Iterator[None]:
        """Count the batches that `stoker.predict` or `stoker.evaluate` has run."""
        yield
        if self.active and self.recorder.on_main_thread():
            self._steps.tick(INFERENCE, "predict", batches, 0, self.recorder.since)

    def _loop(self, original: Callable[..., T], name: str) -> Callable[..., T]:
        recorder = self.recorder

        def run(model: Model, *args: object, **kwds: object) -> T:
            if not self.active or not recorder.on_main_thread():
                return original(model, *args, **kwds)
            recorder.on_wake()
            self._steps.keras_depth += 1
            self._loops_run += 1
            outside = self._progress
            progress = self._progress = _Progress(outside.batch_size)
            before = list(recorder.totals)
            started = recorder.enter(DISPATCH)
            if name == "evaluate":
                self.on_evaluation(True)
            try:
                return original(model, *args, **kwds)
            finally:
                if name == "evaluate":
                    self.on_evaluation(False)
                recorder.on_wake()
                elapsed = recorder.leave() - started
                self._steps.keras_depth -= 1
                self._progress = outside
                if not self._steps.keras_depth:
                    data = args[0] if args else kwds.get("x")
                    self.call_safely(self._count, name, data, before, started, elapsed)
                    rank = TRAINING if name == "fit" else INFERENCE
                    self.call_safely(self._steps.keras_call, name, rank, progress.batches, recorder.since)

        return run

    def _count(self, name: str, data: object, before: list[int], started: int, elapsed: int) -> None:
        recorder = self.recorder
        # Without `nearer_than`, because the loop's own Keras frame comes first.
        site, _ = recorder.sites.caller()
        if site is None:
            return
        spent = [after - b for after, b in zip(recorder.totals, before, strict=True)]
        if name == "predict":
            calls = self.predicts.setdefault(site, PredictCalls())
            calls.calls += 1
            calls.rows += leading_dimension(data)
            calls.from_arrays += _is_part_of_array(data)
            calls.ns += elapsed
            calls.graph_ns += spent[GRAPH]
            if recorder.window is not None:
                recorder.window.claim(started, site, name)
        else:
            fits = self.fits.setdefault(site, FitCalls())
            fits.calls += 1
            fits.ns += elapsed
            fits.dispatch_ns += spent[DISPATCH]
            fits.graph_ns += spent[GRAPH]

    def _epoch_iterator(self, original: Callable[..., None]) -> Callable[..., None]:
        def init(iterator: EpochIterator, *args: object, **kwds: object) -> None:
            original(iterator, *args, **kwds)
            if self.active:
                self.call_safely(self._note_batches, iterator)

        return init

    def _note_batches(self, iterator: EpochIterator) -> None:
        adapter = iterator.data_adapter
        progress = self._progress
        if progress.epoch_batches is None:
            # The first iterator is the loop's own; `fit` makes another for its validation. With `steps_per_epoch`,
            # Keras runs whole executions.
            progress.epoch_batches = 0 if iterator.steps_per_epoch else adapter.num_batches or 0
        size = adapter.batch_size
        progress.batch_size = int(size) if size else batch_size(adapter.get_tf_dataset())

    def _callback_list(self, original: Callable[..., None]) -> Callable[..., None]:
        def init(callbacks: CallbackList, *args: object, **kwds: object) -> None:
            original(callbacks, *args, **kwds)
            if self.active:
                for callback in callbacks.callbacks:
                    self.call_safely(self._time_hooks, type(callback))

        return init

    def _time_hooks(self, callback_type: type) -> None:
        """Wrap, once, the hooks that a callback class itself defines. Keras' own bookkeeping is part of its loop."""
        for cls in callback_type.__mro__:
            if cls in self._wrapped or cls.__name__ in ("History", "ProgbarLogger", "Callback", "object"):
                continue
            self._wrapped.add(cls)
            for hook in (*_BATCH_HOOKS, *_EPOCH_HOOKS):
                if callable(vars(cls).get(hook)):
                    self.replace(cls, hook, partial(self._hook, cls, hook))

    def _hook(self, cls: type, hook: str, original: Callable[..., T]) -> Callable[..., T]:
        where = definition(original)
        own = where is not None and self.recorder.sites.kind_of(where[0]) == USER
        entry = self.callbacks.setdefault((cls.__name__, hook), CallbackTime(cls.__name__, hook, where, own))
        recorder = self.recorder

        def call(callback: Callback, *args: object, **kwds: object) -> T:
            if not self.active or not recorder.on_main_thread():
                return original(callback, *args, **kwds)
            if recorder.top == PAUSED:
                return self._run_hook_in_pause(entry, original, callback, args, kwds)
            totals = recorder.totals
            elsewhere = totals[SYNC] + totals[CHECKPOINT]
            waited = main_thread_wait_ns() if entry.is_sampled else None
            loops = self._loops_run
            started = recorder.enter(PYTHON)
            try:
                return original(callback, *args, **kwds)
            finally:
                ended = recorder.leave()
                has_loops = self._loops_run > loops
                entry.runs_loops = entry.runs_loops or has_loops
                if recorder.window is not None:
                    recorder.window.label(started, PYTHON, where, f"{cls.__name__}.{hook}")
                    if has_loops:
                        recorder.window.take_over(started, where, (SYNC, CHECKPOINT))
                if waited is not None:
                    entry.sampled_ns += ended - started
                    entry.waited_ns += main_thread_wait_ns() - waited
                entry.ns += ended - started
                entry.calls += 1
                entry.elsewhere_ns += totals[SYNC] + totals[CHECKPOINT] - elsewhere

        # Keras checks whether its hooks are the do-nothing defaults.
        call.__dict__.update(original.__dict__)
        setattr(call, "__wrapped__", original)  # noqa: B010 - a function has no such field to mypy
        return call

    def _run_hook_in_pause(
        self,
        entry: CallbackTime,
        original: Callable[..., T],
        callback: Callback,
        args: tuple[object, ...],
        kwds: dict[str, object],
    ) -> T:
        """Run a hook while measuring pauses. Only a long hook is measured."""
        recorder = self.recorder
        started = clock.now_ns()
        # A checkpoint inside the hook is measured separately.
        before = recorder.since
        result = original(callback, *args, **kwds)
        ended = clock.now_ns()
        if ended - started > recorder.heavy_ns and recorder.since == before:
            recorder.charge(PYTHON, started, ended)
            entry.ns += ended - started
        return result

    def _batch_begin(self, original: Callable[..., T]) -> Callable[..., T]:
        def begin(callbacks: CallbackList, batch: int, logs: object = None) -> T:
            self._progress.begin = batch
            return original(callbacks, batch, logs)

        return begin

    def _batch_end(self, rank: int, source: str, original: Callable[..., T]) -> Callable[..., T]:
        recorder, sources, key = self.recorder, self._steps.sources, (rank, source)

        def end(callbacks: CallbackList, batch: int, logs: object = None) -> T:
            result = original(callbacks, batch, logs)
            if self.active and recorder.on_main_thread():
                count = sources.get(key) if recorder.top == PAUSED else None
                if count is None:
                    self.call_safely(self._count_batches, rank, source, batch)
                else:
                    self._count_in_pause(count, batch)
            return result

        return end

    def _count_in_pause(self, count: StepCount, batch: int) -> None:
        """Count the batches since the last one. A number that is not larger belongs to the next epoch."""
        progress, last = self._progress, self._find_last_batch(batch)
        steps = last - progress.last if last > progress.last else last + 1
        progress.last = last
        progress.batches += steps
        self._trained += steps if count.rank == TRAINING else 0
        count.steps += steps
        count.ticks += 1
        count.examples += steps * progress.batch_size
        if self.recorder.is_due:
            self.recorder.on_wake()

    def _find_last_batch(self, batch: int) -> int:
        # With several steps per execution, Keras names the last batch of a whole execution at the end of an epoch.
        limit = self._progress.epoch_batches
        return min(int(batch), limit - 1) if limit else int(batch)

    def _count_batches(self, rank: int, source: str, batch: int) -> None:
        progress = self._progress
        progress.last = self._find_last_batch(batch)
        steps = max(1, progress.last - int(progress.begin) + 1)
        progress.batches += steps
        self._trained += steps if rank == TRAINING else 0
        self._steps.tick(rank, source, steps, steps * progress.batch_size, self.recorder.since)

    def _epoch_end(self, original: Callable[..., T]) -> Callable[..., T]:
        def end(history: Callback, epoch: int, logs: Mapping[str, object] | None = None) -> T:
            if self.active and not self._own_loops and self.recorder.on_main_thread():
                self.call_safely(self._note_epoch, epoch, logs or {})
            return original(history, epoch, logs)

        return end

    def _note_epoch(self, epoch: int, logs: Mapping[str, object]) -> None:
        # Tensors are left alone, because reading one would be a sync of our own.
        values = {name: float(value) for name, value in logs.items() if isinstance(value, int | float)}
        if not values:
            return
        if len(self.epochs) >= _MOST_EPOCHS:
            # The record is saved once a second, so every other one of the earlier epochs is dropped.
            del self.epochs[:-1:2]
        self.epochs.append(EpochLogs(int(epoch) + 1, self._trained, values))

    def _measure_variables(self, optimizer: Optimizer) -> None:
        # A Keras variable holds TensorFlow's variable as `value`. On a plain tf.Variable, `value` is a method.
        variables = [
            v if callable(v.value) else v.value for v in keras_optimizers.trained_variables(optimizer)
        ]
        self.variable_bytes = nbytes_of(variables) or 1

    def _apply(self, original: Callable[..., T]) -> Callable[..., T]:
        recorder = self.recorder

        def apply(optimizer: Optimizer, *args: object, **kwds: object) -> T:
            result = original(optimizer, *args, **kwds)
            # While a function is traced, or inside `fit`, the step is counted elsewhere.
            if (
                self.active
                and not self._steps.keras_depth
                and recorder.top in (PYTHON, DISPATCH)
                and recorder.on_main_thread()
            ):
                if not self.variable_bytes:
                    self.call_safely(self._measure_variables, optimizer)
                self._steps.event(EAGER_TRAINING, id(optimizer), recorder.since)
            return result

        return apply


def _refilter(
    filter_traceback: Callable[[Callable[..., T]], Callable[..., T]],
    wrap: Callable[[Callable[..., T], str], Callable[..., T]],
    name: str,
    loop: Callable[..., T],
) -> Callable[..., T]:
    """Put a wrapper inside the traceback filter that Keras has around `fit`, so that tracebacks look the same."""
    inner = getattr(loop, "__wrapped__", None)
    if inner is None:
        return wrap(loop, name)
    wrapped = mark_as_framework(wrap(inner, name))
    for attribute in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(wrapped, attribute, getattr(inner, attribute))
    setattr(wrapped, "__wrapped__", inner)  # noqa: B010 - a function has no such field to mypy
    return filter_traceback(wrapped)


def _is_part_of_array(data: object) -> bool:
    """Return whether an array is a view of some rows of a larger one."""
    whole, size = getattr(getattr(data, "base", None), "nbytes", 0), getattr(data, "nbytes", 0)
    return isinstance(whole, int) and isinstance(size, int) and whole > size
