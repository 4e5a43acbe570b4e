"""Measure what each stage of a pipeline costs in one serial pass, by tf.data's own accounts.

These accounts leave out the time that function calls take. The processor time of the pass shows how much that is in
total. It is divided among the stages that call functions, by the number of calls, so that the stages add up to the
measured time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import tensorflow as tf

from stoker.data.tuning import stages
from stoker.data.tuning.figures import StageFigures
from stoker.data.tuning.rates import repeat_endlessly
from stoker.data.tuning.rebuilding import renew
from stoker.tf_internals.types import Dataset, DatasetIterator, ProtoMessage

_CALLING = ("Map", "ParallelMap", "Filter", "FlatMap", "Interleave", "ParallelInterleave", "TakeWhile")


def measure_stages(pipeline: Dataset, seconds: float) -> StageFigures:
    """Return the tree of the stages, with everything that could be measured."""
    model = tf.data.experimental.get_model_proto
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = True
    iterator = iter(repeat_endlessly(renew(pipeline)).with_options(options))
    # The first elements pay for work that happens once: preparing functions, filling buffers.
    if not _take(iterator, 0.0) or not _take(iterator, seconds / 2):
        return _tree(pipeline, None, _Accounts({}, {}, 0.0))
    before = model(iterator).nodes
    cpu, begin = time.process_time(), time.perf_counter()
    count = _take(iterator, seconds)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    books = model(iterator)
    nodes = {number: _subtract(node, before.get(number)) for number, node in books.nodes.items()}
    own = _add_calls(nodes, cpu - count * _cost_of_next())
    top = nodes[books.output]
    for _ in range(2 if repeat_endlessly(pipeline) is not pipeline else 1):
        # Skip the iterator's own root, and the repeat that was added to time it.
        top = nodes[top.inputs[0]]
    return _tree(pipeline, top, _Accounts(nodes, own, wall))


def _take(iterator: DatasetIterator, seconds: float) -> int:
    """Take elements for this many seconds, at least one. Return how many there were."""
    begin, count = time.perf_counter(), 0
    for _ in iterator:
        count += 1
        if time.perf_counter() - begin >= seconds:
            break
    return count


@dataclass(frozen=True)
class _Node:
    """tf.data's accounts of a stage during the measurement."""

    id: int
    name: str
    inputs: tuple[int, ...]
    num_elements: int
    processing_time: int
    bytes_produced: int


@dataclass(frozen=True)
class _Accounts:
    """The nodes by number, the seconds of each, and the seconds of the whole pass."""

    nodes: dict[int, _Node]
    own: dict[int, float]
    wall: float

    def total(self, node: _Node) -> float:
        """Return the seconds of a node and of all nodes below it."""
        return self.own[node.id] + sum(self.total(self.nodes[number]) for number in node.inputs)


def _subtract(now: ProtoMessage, before: ProtoMessage | None) -> _Node:
    names = ("num_elements", "processing_time", "bytes_produced")
    sums = [int(getattr(now, name)) - (0 if before is None else int(getattr(before, name))) for name in names]
    return _Node(now.id, now.name, tuple(now.inputs), *sums)


def _add_calls(nodes: dict[int, _Node], cpu: float) -> dict[int, float]:
    """Return the seconds of each node: those that tf.data saw, and its share of those that tf.data did not see."""
    seen = {number: node.processing_time / 1e9 for number, node in nodes.items()}
    calls = {n: node.num_elements for n, node in nodes.items() if node.name.startswith(_CALLING)}
    missing = max(0.0, cpu - sum(seen.values()))
    total = sum(calls.values())
    return {n: seen[n] + (missing * calls.get(n, 0) / total if total else 0.0) for n in nodes}


def _tree(stage: Dataset, node: _Node | None, books: _Accounts) -> StageFigures:
    given = stages.arguments(stage).get("num_parallel_calls")
    if stages.kind(stage) in ("Options", "Restructured"):
        # These stages do not run.
        return _tree(stages.inputs(stage)[0], node, books)
    node = _match(stage, node, books)
    below = [] if stages.is_generator(stage) else stages.inputs(stage)
    nodes = [] if node is None else [books.nodes[number] for number in node.inputs]
    inputs = tuple(
        _tree(one, nodes[place] if place < len(nodes) else None, books) for place, one in enumerate(below)
    )
    if node is None or not node.num_elements:
        return StageFigures(stages.describe(stage), given, inputs=inputs)
    # What a stage's functions read is the stage's own work.
    spent = books.own[node.id] + sum(books.total(one) for one in nodes[len(below) :])
    return StageFigures(
        stages.describe(stage),
        given,
        elements_per_s=node.num_elements / books.wall,
        alone_per_s=node.num_elements / spent if spent else None,
        core=spent / books.wall,
        element_bytes=node.bytes_produced / node.num_elements,
        inputs=inputs,
    )


def _match(stage: Dataset, node: _Node | None, books: _Accounts) -> _Node | None:
    """Return the node of a stage; some stages, such as a cache, run as two nodes."""
    while node is not None and stages.kind(stage) not in node.name:
        node = books.nodes[node.inputs[0]] if len(node.inputs) == 1 else None
    return node


def _cost_of_next() -> float:
    """Return the processor seconds that Python takes to ask for an element."""
    begin, count = time.process_time(), 0
    for _ in tf.data.Dataset.range(200):
        count += 1
    return (time.process_time() - begin) / count
