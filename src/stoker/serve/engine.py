"""What computes a bundle's answers: the function of its SavedModel, or the same graph with the weights as constants.

The frozen graph runs in a session, in the caller's thread, and costs less than half of a call of the function. Which
one is used is measured on the bundle's own examples; one that does not give their answers is never chosen. Both take
any number of rows without tracing again, and any number of threads at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from stoker import clock
from stoker.serve.batching import Run
from stoker.serve.bundle import Bundle, BundleError
from stoker.serve.proof import apart, loaded, recorded

# A graph with its constants must stay well below the 2 GiB a message may have.
_MOST_FROZEN_BYTES = 1 << 30
_TRIES = 20
_Recorded = tuple[dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class Engine:
    """One way to compute, and what a single row took."""

    name: str
    run: Run
    row_seconds: float


def chosen(known: Bundle, name: str | None = None) -> Engine:
    """The engine that answers a single row soonest, of those that give the recorded answers.

    Args:
        known: the bundle.
        name: "function" or "frozen" instead of measuring.

    Raises:
        BundleError: none does.
    """
    function = loaded(known)
    known_answers = recorded(known)
    ways: dict[str, Callable[[], Run | None]] = {
        "function": functools.partial(_function, known, function),
        "frozen": functools.partial(_frozen, known, function),
    }
    if name is not None and name not in ways:
        raise BundleError(f"engine {name!r} is none of {', '.join(ways)}")
    found = []
    for way, make in ways.items():
        run = make() if name in (None, way) else None
        if run is not None and _right(known, run, known_answers):
            found.append(Engine(way, run, _row_seconds(known, run, known_answers)))
    if not found:
        raise BundleError(f"{known.path} does not give its recorded answers here: see stoker bundle --verify")
    return min(found, key=lambda engine: engine.row_seconds)


def _function(known: Bundle, function: Any) -> Run:
    inputs = [field.tensor for field in known.signature.inputs]
    outputs = [field.tensor for field in known.signature.outputs]

    def run(arrays: list[Any]) -> list[Any]:
        given = {name: tf.constant(array) for name, array in zip(inputs, arrays, strict=True)}
        answers = function(**given)
        return [answers[name].numpy() for name in outputs]

    return run


def _frozen(known: Bundle, function: Any) -> Run | None:
    """None where something cannot be a constant, such as a vocabulary's table."""
    if known.description["weights"]["bytes"] > _MOST_FROZEN_BYTES:
        return None
    try:
        frozen = convert_variables_to_constants_v2(function)
    except (ValueError, KeyError, NotImplementedError, tf.errors.OpError):
        return None
    if frozen.captured_inputs or len(frozen.inputs) != len(known.signature.inputs):
        return None
    graph = tf.Graph()
    with graph.as_default():
        tf.graph_util.import_graph_def(frozen.graph.as_graph_def(), name="")
    options = tf.compat.v1.ConfigProto()
    options.gpu_options.allow_growth = True
    # A small graph is run sooner by one thread than it is spread over several; large kernels still use all cores.
    options.experimental.executor_type = "SINGLE_THREADED_EXECUTOR"
    session = tf.compat.v1.Session(graph=graph, config=options)
    takes = {tensor.op.name: tensor.name for tensor in frozen.inputs}
    feeds = [takes.get(field.tensor) for field in known.signature.inputs]
    # Freezing flattens the outputs, by name.
    order = sorted(field.tensor for field in known.signature.outputs)
    gives = dict(zip(order, [tensor.name for tensor in frozen.outputs], strict=True))
    if None in feeds:
        return None
    wanted = config_pb2.CallableOptions()
    wanted.feed.extend(feeds)
    wanted.fetch.extend(gives[field.tensor] for field in known.signature.outputs)
    # The public make_callable looks at feeds and fetches anew in every call, which takes longer than a small model.
    call = session._make_callable_from_options(wanted)
    return lambda arrays: list(call(*arrays))


def _right(known: Bundle, run: Run, examples: _Recorded) -> bool:
    inputs, answers = examples
    try:
        found = run([inputs[field.name] for field in known.signature.inputs])
    except tf.errors.OpError:
        return False  # the single-threaded executor does not take every graph
    beside = {field.name: one for field, one in zip(known.signature.outputs, found, strict=True)}
    return not any(
        apart(field, beside[field.name], answers[field.name], beside) for field in known.signature.outputs
    )


def _row_seconds(known: Bundle, run: Run, examples: _Recorded) -> float:
    inputs, _ = examples
    row = [inputs[field.name][:1] for field in known.signature.inputs]
    times = []
    for _ in range(_TRIES):
        started = clock.now_ns()
        run(row)
        times.append(clock.now_ns() - started)
    return sorted(times)[_TRIES // 2] / 1e9
