"""Input: how long the program waits for the next element, and what its tf.data pipelines are made of.

Python iteration is timed at the iterator. Inside a compiled step the wait is seen only by the profiler's
windows; for those the pipelines noted here say which of the user's lines made which stage.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from stoker.doctor.attach import announced
from stoker.doctor.attach.sites import KERAS_LOOP, SiteKey
from stoker.doctor.probes.parts.input import InputPart
from stoker.doctor.probes.pipelines import FIRST_ELEMENT, Pipeline, Stage
from stoker.doctor.probes.probe import Probe
from stoker.doctor.probes.recorder import DISPATCH, INPUT, PYTHON, STARTUP, TEARDOWN, Recorder
from stoker.records import TuningRow
from stoker.tf_internals import datasets, iterators

_MAX_PIPELINES = 200
_MAX_TUNINGS = 20
_LOOK_EVERY = 64
# When to ask tf.data how a pipeline ran: it takes a fifth of a millisecond.
_LOOK_INSIDE = frozenset(8**power for power in range(1, 9))
_PYTHON_OPS = frozenset({"PyFunc", "EagerPyFunc", "PyFuncStateless"})


@dataclass
class _Iteration:
    """One live iterator."""

    pipeline: Pipeline
    gone: weakref.ref[Any]
    # A loop of Keras or of ours made it for itself: the program has no say in how long it lives.
    in_loop: bool = False
    # It has not given its first element yet.
    fresh: bool = True


class InputWait(Probe):
    """Times `next()` on tf.data iterators and describes the pipelines behind them."""

    name = "input"

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.pipelines: dict[Any, Pipeline] = {}
        self._made: weakref.WeakKeyDictionary[Any, tuple[SiteKey | None, bool]] = weakref.WeakKeyDictionary()
        # By id, with a reference that forgets the id when the iterator goes: a weak dictionary takes longer.
        self._iterations: dict[int, _Iteration] = {}
        self._tuning = False
        self.tunings: list[tuple[SiteKey | None, TuningRow]] = []

    def attach(self) -> None:
        import tensorflow as tf

        self._eager = tf.executing_eagerly
        self._no_model = tf.errors.OpError
        # Where the function itself is differs from version to version.
        self._model_of = tf.data.experimental.get_model_proto
        self.replace(tf.data.Dataset, "__init__", self._dataset_made)
        self.replace(iterators.iterator_type(), "__init__", self._iterator_made)
        self.replace(*iterators.next_element(), self._next)
        self.add(iterators.iterator_type(), "__del__", self._teardown())
        self.replace(*iterators.next_distributed_element(), self._next)
        self.on_detach(announced.listen(announced.TUNE, self._announced_tuning))
        self.on_detach(announced.listen(announced.TUNED, self._announced_report))

    def measure(self, ended: bool) -> InputPart:
        return InputPart(list(self.pipelines.values()), list(self.tunings))

    @contextmanager
    def _announced_tuning(self) -> Iterator[None]:
        """`stoker.tune` at work: what it runs to time it is getting ready, not the program waiting for its input."""
        if not self.active or not self.recorder.on_main_thread():
            yield
            return
        self._tuning = True
        self.recorder.enter(STARTUP)
        try:
            yield
        finally:
            self.recorder.leave()
            self._tuning = False

    @contextmanager
    def _announced_report(self, report: TuningRow) -> Iterator[None]:
        """What the tuner found: the first of them are kept."""
        if self.active and len(self.tunings) < _MAX_TUNINGS:
            self.tunings.append((self.recorder.sites.caller()[0], report))
        yield

    def _dataset_made(self, original: Callable[..., None]) -> Callable[..., None]:
        def init(dataset: Any, *args: Any, **kwds: Any) -> None:
            original(dataset, *args, **kwds)
            if self.active:
                try:
                    site, farthest = self.recorder.sites.caller()
                    generator = _called_from("from_generator_op.py")
                    # What Keras builds around an array is its own affair; a Python source is the user's.
                    self._made[dataset] = (site if generator or farthest < KERAS_LOOP else None, generator)
                except Exception as error:  # noqa: BLE001 - a fault of ours must not reach the program
                    self.fail(error)

        return init

    def _iterator_made(self, original: Callable[..., None]) -> Callable[..., None]:
        def init(iterator: Any, *args: Any, **kwds: Any) -> None:
            original(iterator, *args, **kwds)
            dataset = iterators.dataset_of(iterator)
            if self.active and dataset is not None and not self._tuning:
                try:
                    self._remember(iterator, self._pipeline(dataset))
                except Exception as error:  # noqa: BLE001 - as above
                    self.fail(error)

        return init

    def _next(self, original: Callable[..., Any]) -> Callable[..., Any]:
        recorder = self.recorder

        def get_next(iterator: Any, *args: Any, **kwds: Any) -> Any:
            if (
                not self.active
                or (recorder.top != PYTHON and recorder.top != DISPATCH)
                or not recorder.on_main_thread()
                or not self._eager()
            ):
                return original(iterator, *args, **kwds)
            started, found = recorder.enter(INPUT), 0
            try:
                element = original(iterator, *args, **kwds)
                found = 1
                return element
            finally:
                ended = recorder.leave()
                try:
                    self._waited(iterator, started, ended, found)
                except Exception as error:  # noqa: BLE001 - as above
                    self.fail(error)

        return get_next

    def _teardown(self) -> Callable[[Any], None]:
        """An iterator that goes away waits for tf.data's autotuner, up to seconds: on an account of its own."""
        recorder = self.recorder

        def delete(iterator: Any) -> None:
            if self.active and recorder.top in (PYTHON, DISPATCH) and recorder.on_main_thread():
                started = recorder.enter(TEARDOWN)
                try:
                    iterators.drop_resource(iterator)
                finally:
                    ended = recorder.leave()
                    iteration = self._iterations.get(id(iterator))
                    if iteration is not None and not iteration.in_loop:
                        iteration.pipeline.teardowns += 1
                        iteration.pipeline.teardown_ns += ended - started

        return delete

    def _waited(self, iterator: Any, started: int, ended: int, found: int) -> None:
        elapsed = ended - started
        iteration = self._iterations.get(id(iterator))
        if iteration is None:
            return
        pipeline = iteration.pipeline
        if self.recorder.window is not None:
            self.recorder.window.label(started, INPUT, pipeline, FIRST_ELEMENT if iteration.fresh else "")
        pipeline.elements += found
        if iteration.fresh:
            iteration.fresh = False
            pipeline.first_ns += elapsed
        else:
            pipeline.wait_ns += elapsed
        if found and pipeline.elements in _LOOK_INSIDE:
            pipeline.ran = self._inside(iterator) or pipeline.ran
        if pipeline.elements <= 3 or pipeline.elements % _LOOK_EVERY == 0:
            site, _ = self.recorder.sites.caller()
            if site is not None and (site in pipeline.sites or len(pipeline.sites) < 20):
                pipeline.sites[site] = pipeline.sites.get(site, 0) + 1

    def _inside(self, iterator: Any) -> list[tuple[str, int, int]]:
        """The stages by tf.data's own books, which the autotuner keeps."""
        if type(iterator).__name__ != "OwnedIterator":
            return []
        self.recorder.enter(INPUT)
        try:
            nodes = self._model_of(iterator).nodes
        except self._no_model:
            # The program has switched the autotuner off for this pipeline.
            return []
        finally:
            self.recorder.leave()
        inner = {number for node in nodes.values() for number in node.inputs}
        pending = [number for number in nodes if number not in inner]
        found = []
        while pending:
            node = nodes[pending.pop()]
            found.append((node.name, int(node.num_elements), int(node.processing_time)))
            pending.extend(reversed(node.inputs))
        return found

    def _remember(self, iterator: Any, pipeline: Pipeline) -> None:
        number = id(iterator)
        gone = weakref.ref(iterator, lambda _: self._iterations.pop(number, None))
        _, farthest = self.recorder.sites.caller()
        self._iterations[number] = _Iteration(pipeline, gone, farthest == KERAS_LOOP)

    def _pipeline(self, dataset: Any) -> Pipeline:
        stages = self._stages(dataset)
        key = tuple((stage.name, stage.site) for stage in stages)
        pipeline = self.pipelines.get(key)
        if pipeline is None:
            if len(self.pipelines) >= _MAX_PIPELINES:
                key = ()
            pipeline = self.pipelines.setdefault(key, Pipeline(stages))
            site, _ = self.recorder.sites.caller()
            if site is not None:
                pipeline.sites[site] = 1
        pipeline.iterators += 1
        return pipeline

    def _stages(self, dataset: Any) -> list[Stage]:
        """The chain of transformations; of a dataset with several inputs, all of them, first input first."""
        stages: list[Stage] = []
        pending = [dataset]
        while pending and len(stages) < 50:
            current = pending.pop()
            site, generator = self._made.get(current, (None, False))
            name = type(current).__name__.strip("_").removesuffix("V2").removesuffix("Dataset")
            if generator:
                # from_generator is built of several datasets: one stage stands for them all.
                stages.append(Stage("from_generator", site, python=True))
                continue
            if name not in ("Options", "DatasetV1Adapter", "Model"):
                stages.append(Stage(name, site, _runs_python(current), name.startswith("Parallel")))
            pending.extend(reversed(datasets.inputs(current)))
        return stages


def batch_size(dataset: Any) -> int:
    """The batch size a dataset was told in `batch()`, 0 if it never was."""
    pending = [dataset]
    while pending:
        current = pending.pop()
        size = datasets.argument(current, "batch_size", None)
        if size is not None:
            return int(size)
        pending.extend(reversed(datasets.inputs(current)))
    return 0


def _runs_python(dataset: Any) -> bool:
    wrapper = datasets.argument(dataset, "map_func", None)
    graph = getattr(getattr(wrapper, "function", None), "graph", None)
    return graph is not None and any(op.type in _PYTHON_OPS for op in graph.get_operations())


def _called_from(basename: str) -> bool:
    frame: FrameType | None = sys._getframe(2)
    for _ in range(12):
        if frame is None:
            return False
        if frame.f_code.co_filename.endswith(basename):
            return True
        frame = frame.f_back
    return False
