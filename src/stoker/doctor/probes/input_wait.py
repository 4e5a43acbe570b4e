"""Input: how long the program waits for the next element, and what its tf.data pipelines consist of.

Python iteration is timed at the iterator. Only the profiler's windows see a wait inside a compiled step. For such
waits, the pipelines noted here show which of the user's lines made which stage.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

from stoker import clock
from stoker.doctor.attach import announced
from stoker.doctor.attach.sites import KERAS_LOOP, SiteKey, count_site
from stoker.doctor.probes.parts.input import InputPart
from stoker.doctor.probes.pipelines import FIRST_ELEMENT, Pipeline, UserStage
from stoker.doctor.probes.probe import Growing, Probe
from stoker.doctor.probes.recorder import DISPATCH, INPUT, PAUSED, PYTHON, STARTUP, TEARDOWN, Recorder
from stoker.records import TuningRow
from stoker.tf_internals import datasets, iterators
from stoker.tf_internals.graphs import PYTHON_OPS
from stoker.tf_internals.types import Dataset, DatasetIterator

T = TypeVar("T")
_MAX_PIPELINES = 200
_MAX_TUNINGS = 20
_LOOK_EVERY = 64
# When to ask tf.data how a pipeline ran: an answer takes a fifth of a millisecond.
_LOOK_INSIDE = frozenset(8**power for power in range(1, 9))


@dataclass
class _Iteration:
    """A live iterator."""

    pipeline: Pipeline
    # Drops this entry when the iterator goes away.
    gone: weakref.ref[DatasetIterator]
    # Whether a loop of Keras or of Stoker made the iterator, so that the program has no say in how long it lives.
    in_loop: bool = False
    # Whether it has not given its first element yet.
    fresh: bool = True


class InputWait(Probe):
    """Times `next()` on tf.data iterators and describes the pipelines behind them."""

    name = "input"

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        # By the names and lines of their stages.
        self.pipelines: dict[tuple[tuple[str, SiteKey | None], ...], Pipeline] = {}
        # The line that made a dataset, and whether `from_generator` did.
        self._origins: weakref.WeakKeyDictionary[Dataset, tuple[SiteKey | None, bool]] = (
            weakref.WeakKeyDictionary()
        )
        # By id: a weak dictionary is slower.
        self._iterations: dict[int, _Iteration] = {}
        self._tuning = False
        self.tunings: list[tuple[SiteKey | None, TuningRow]] = []

    def attach(self) -> None:
        import tensorflow as tf

        self._eager = tf.executing_eagerly
        self._no_model = tf.errors.OpError
        # The place of the function itself differs from version to version.
        self._model_of = tf.data.experimental.get_model_proto
        self.replace(tf.data.Dataset, "__init__", self._dataset_creation)
        self.replace(iterators.iterator_type(), "__init__", self._iterator_creation)
        self.replace(*iterators.next_element(), self._next)
        self.add(iterators.iterator_type(), "__del__", self._teardown())
        self.replace(*iterators.next_distributed_element(), self._next)
        self.on_detach(announced.listen(announced.TUNE, self._enter_tuning))
        self.on_detach(announced.listen(announced.TUNED, self._keep_report))

    def list_growing(self) -> Iterable[Growing]:
        return [(pipeline, (), ("wait_ns",)) for pipeline in list(self.pipelines.values())]

    def measure(self, ended: bool) -> InputPart:
        return InputPart(list(self.pipelines.values()), list(self.tunings))

    @contextmanager
    def _enter_tuning(self) -> Iterator[None]:
        """Charge the pipelines that `stoker.tune` runs to start-up: the program is not waiting for its input."""
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
    def _keep_report(self, report: TuningRow) -> Iterator[None]:
        """Keep the tuner's reports for the first few pipelines."""
        if self.active and len(self.tunings) < _MAX_TUNINGS:
            self.tunings.append((self.recorder.sites.caller()[0], report))
        yield

    def _dataset_creation(self, original: Callable[..., None]) -> Callable[..., None]:
        def init(dataset: Dataset, *args: object, **kwds: object) -> None:
            original(dataset, *args, **kwds)
            if self.active:
                self.call_safely(self._note_origin, dataset)

        return init

    def _note_origin(self, dataset: Dataset) -> None:
        site, farthest = self.recorder.sites.caller()
        generator = _is_called_from("from_generator_op.py")
        # What Keras builds around an array is its own affair. A Python source is the user's.
        self._origins[dataset] = (site if generator or farthest < KERAS_LOOP else None, generator)

    def _iterator_creation(self, original: Callable[..., None]) -> Callable[..., None]:
        def init(iterator: DatasetIterator, *args: object, **kwds: object) -> None:
            original(iterator, *args, **kwds)
            dataset = iterators.dataset_of(iterator)
            if self.active and dataset is not None and not self._tuning:
                self.call_safely(self._remember, iterator, dataset)

        return init

    def _next(self, original: Callable[..., T]) -> Callable[..., T]:
        recorder = self.recorder

        def get_next(iterator: DatasetIterator, *args: object, **kwds: object) -> T:
            top = recorder.top
            if top == PAUSED and self.active and recorder.on_main_thread():
                iteration = self._iterations.get(id(iterator))
                if iteration is not None and not iteration.fresh and not recorder.has_ended_pause():
                    return self._take_next_in_pause(iteration, original, iterator, args, kwds)
            elif (
                not self.active
                or (top != PYTHON and top != DISPATCH)
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
                self.call_safely(self._count, iterator, started, recorder.leave(), found)

        return get_next

    def _take_next_in_pause(
        self,
        iteration: _Iteration,
        original: Callable[..., T],
        iterator: DatasetIterator,
        args: tuple[object, ...],
        kwds: dict[str, object],
    ) -> T:
        """Count an element while measuring pauses. A long wait for the element is still measured."""
        started = clock.now_ns()
        element = original(iterator, *args, **kwds)
        ended = clock.now_ns()
        iteration.pipeline.elements += 1
        if ended - started > self.recorder.heavy_ns:
            self.recorder.charge(INPUT, started, ended)
            iteration.pipeline.wait_ns += ended - started
        return element

    def _teardown(self) -> Callable[[DatasetIterator], None]:
        """Return a destructor that times an iterator's end, which may wait seconds for tf.data's autotuner."""
        recorder = self.recorder

        def delete(iterator: DatasetIterator) -> None:
            if self.active and recorder.top in (PYTHON, DISPATCH, PAUSED) and recorder.on_main_thread():
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

    def _count(self, iterator: DatasetIterator, started: int, ended: int, found: int) -> None:
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
            pipeline.ran = self._read_model(iterator) or pipeline.ran
        if pipeline.elements <= 3 or pipeline.elements % _LOOK_EVERY == 0:
            site, _ = self.recorder.sites.caller()
            count_site(pipeline.sites, site)

    def _read_model(self, iterator: DatasetIterator) -> list[tuple[str, int, int]]:
        """Return the stages in the autotuner's model of the pipeline: name, elements, nanoseconds."""
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

    def _remember(self, iterator: DatasetIterator, dataset: Dataset) -> None:
        number, pipeline = id(iterator), self._pipeline(dataset)
        gone = weakref.ref(iterator, lambda _: self._iterations.pop(number, None))
        _, farthest = self.recorder.sites.caller()
        self._iterations[number] = _Iteration(pipeline, gone, farthest == KERAS_LOOP)

    def _pipeline(self, dataset: Dataset) -> Pipeline:
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

    def _stages(self, dataset: Dataset) -> list[UserStage]:
        """Return the chain of transformations, with all inputs of a dataset that has several, the first one first."""
        stages: list[UserStage] = []
        pending = [dataset]
        while pending and len(stages) < 50:
            current = pending.pop()
            site, generator = self._origins.get(current, (None, False))
            name = type(current).__name__.strip("_").removesuffix("V2").removesuffix("Dataset")
            if generator:
                # `from_generator` consists of several datasets. One stage stands for all of them.
                stages.append(UserStage("from_generator", site, python=True))
                continue
            if name not in ("Options", "DatasetV1Adapter", "Model"):
                stages.append(UserStage(name, site, _runs_python(current), name.startswith("Parallel")))
            pending.extend(reversed(datasets.inputs(current)))
        return stages


def batch_size(dataset: Dataset) -> int:
    """Return the batch size that the program gave to `batch()`; 0 if it never did."""
    pending = [dataset]
    while pending:
        current = pending.pop()
        size = datasets.argument(current, "batch_size", None)
        if size is not None:
            return int(size)
        pending.extend(reversed(datasets.inputs(current)))
    return 0


def _runs_python(dataset: Dataset) -> bool:
    wrapper = datasets.argument(dataset, "map_func", None)
    graph = getattr(getattr(wrapper, "function", None), "graph", None)
    return graph is not None and any(op.type in PYTHON_OPS for op in graph.get_operations())


def _is_called_from(basename: str) -> bool:
    """Return whether a file of this name is among the innermost frames."""
    frame: FrameType | None = sys._getframe(2)
    for _ in range(14):
        if frame is None:
            return False
        if frame.f_code.co_filename.endswith(basename):
            return True
        frame = frame.f_back
    return False
