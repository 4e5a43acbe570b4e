"""What each stage of a pipeline costs: one serial pass, as tf.data itself keeps its books.

Its books leave out the calling of functions. The processor time of the pass says how much that is in all; it is given
to the stages that call functions, by the number of calls, so that the stages add up to what was measured.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from stoker.data.tuning import stages
from stoker.data.tuning.figures import StageFigures
from stoker.data.tuning.rates import endless
from stoker.data.tuning.rebuilding import fresh

_CALLING = ("Map", "ParallelMap", "Filter", "FlatMap", "Interleave", "ParallelInterleave", "TakeWhile")


def measured(pipeline: Any, seconds: float) -> StageFigures:
    """The tree of the stages, with what could be measured of it."""
    model = tf.data.experimental.get_model_proto
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = True
    iterator = iter(endless(fresh(pipeline)).with_options(options))
    # The first elements pay for what happens once: functions are made ready, buffers are filled.
    if not _taken(iterator, 0.0) or not _taken(iterator, seconds / 2):
        return _tree(pipeline, None, {}, 0.0)
    before = model(iterator).nodes
    cpu, begin = time.process_time(), time.perf_counter()
    count = _taken(iterator, seconds)
    wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    books = model(iterator)
    nodes = {number: _since(node, before.get(number)) for number, node in books.nodes.items()}
    own = _with_calls(nodes, cpu - count * _cost_of_next())
    top = nodes[books.output]
    for _ in range(2 if endless(pipeline) is not pipeline else 1):
        # The iterator's own root, and the repeat that was added to time it.
        top = nodes[top.inputs[0]]
    return _tree(pipeline, top, {"nodes": nodes, "own": own}, wall)


def _taken(iterator: Any, seconds: float) -> int:
    """How many elements were taken in so many seconds; at least one, if there is one."""
    begin, count = time.perf_counter(), 0
    for _ in iterator:
        count += 1
        if time.perf_counter() - begin >= seconds:
            break
    return count


@dataclass(frozen=True)
class _Node:
    """What tf.data's books say of a stage for the time that was measured."""

    id: int
    name: str
    inputs: tuple[int, ...]
    num_elements: int
    processing_time: int
    bytes_produced: int


def _since(now: Any, before: Any) -> _Node:
    names = ("num_elements", "processing_time", "bytes_produced")
    sums = [int(getattr(now, name)) - (0 if before is None else int(getattr(before, name))) for name in names]
    return _Node(now.id, now.name, tuple(now.inputs), *sums)


def _with_calls(nodes: dict[int, _Node], cpu: float) -> dict[int, float]:
    """Seconds of each node: what tf.data saw, and its part of what it did not see."""
    seen = {number: node.processing_time / 1e9 for number, node in nodes.items()}
    calls = {n: node.num_elements for n, node in nodes.items() if node.name.startswith(_CALLING)}
    missing = max(0.0, cpu - sum(seen.values()))
    total = sum(calls.values())
    return {n: seen[n] + (missing * calls.get(n, 0) / total if total else 0.0) for n in nodes}


def _tree(stage: Any, node: Any, books: dict[str, Any], wall: float) -> StageFigures:
    given = stages.arguments(stage).get("num_parallel_calls")
    if stages.kind(stage) in ("Options", "Restructured"):
        # Not stages that run.
        return _tree(stages.inputs(stage)[0], node, books, wall)
    node = _matching(stage, node, books)
    below = [] if stages.is_generator(stage) else stages.inputs(stage)
    nodes = [] if node is None else [books["nodes"][number] for number in node.inputs]
    inputs = tuple(
        _tree(one, nodes[place] if place < len(nodes) else None, books, wall)
        for place, one in enumerate(below)
    )
    if node is None or not node.num_elements:
        return StageFigures(stages.described(stage), given, inputs=inputs)
    # What the functions of a stage read is the stage's own work.
    spent = books["own"][node.id] + sum(_all(one, books) for one in nodes[len(below) :])
    return StageFigures(
        stages.described(stage),
        given,
        elements_per_s=node.num_elements / wall,
        alone_per_s=node.num_elements / spent if spent else None,
        core=spent / wall,
        element_bytes=node.bytes_produced / node.num_elements,
        inputs=inputs,
    )


def _matching(stage: Any, node: Any, books: dict[str, Any]) -> Any:
    """The node of a stage: some, such as a cache, are run as two."""
    while node is not None and stages.kind(stage) not in node.name:
        node = books["nodes"][node.inputs[0]] if len(node.inputs) == 1 else None
    return node


def _all(node: Any, books: dict[str, Any]) -> float:
    spent: float = books["own"][node.id]
    return spent + sum(_all(books["nodes"][number], books) for number in node.inputs)


def _cost_of_next() -> float:
    """Processor seconds that Python takes to ask for an element."""
    begin, count = time.process_time(), 0
    for _ in tf.data.Dataset.range(200):
        count += 1
    return (time.process_time() - begin) / count
