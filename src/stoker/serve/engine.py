"""What computes a bundle's answers: a TensorFlow session over its SavedModel, or the SavedModel's function.

A session is called without a look at its arguments, and runs a small graph in the caller's thread: a row costs a tenth
of a call of the function. Graphs with loops need the session's threads. Which way is used is measured on the bundle's
own examples; one that does not give their answers is never chosen. All take any number of rows without tracing again,
and any number of threads at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.python.saved_model.loader_impl import SavedModelLoader

from stoker import clock
from stoker.serve import bundle
from stoker.serve.batching import Run
from stoker.serve.bundle import Bundle, BundleError
from stoker.serve.proof import apart, loaded, recorded

# Weights of more than this are not loaded several times to compare: the first way that is right is taken.
_MOST_COMPARED_BYTES = 256 << 20
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
        name: "session", "threads" or "function" instead of measuring.

    Raises:
        BundleError: none does.
    """
    ways: dict[str, Callable[[], Run]] = {
        "session": functools.partial(_session, known, "SINGLE_THREADED_EXECUTOR"),
        "threads": functools.partial(_session, known, ""),
        "function": functools.partial(_function, known),
    }
    if name is not None and name not in ways:
        raise BundleError(f"engine {name!r} is none of {', '.join(ways)}")
    examples = recorded(known)
    found: list[Engine] = []
    for way in ways if name is None else [name]:
        if found and known.description["weights"]["bytes"] > _MOST_COMPARED_BYTES:
            break
        run = ways[way]()
        if _right(known, run, examples):
            found.append(Engine(way, run, _row_seconds(known, run, examples)))
    if not found:
        raise BundleError(f"{known.path} does not give its recorded answers here: see stoker bundle --verify")
    return min(found, key=lambda engine: engine.row_seconds)


def _function(known: Bundle) -> Run:
    function = loaded(known)
    inputs = [field.tensor for field in known.signature.inputs]
    outputs = [field.tensor for field in known.signature.outputs]

    def run(arrays: list[Any]) -> list[Any]:
        given = {name: tf.constant(array) for name, array in zip(inputs, arrays, strict=True)}
        answers = function(**given)
        return [answers[name].numpy() for name in outputs]

    return run


def _session(known: Bundle, executor: str) -> Run:
    options = tf.compat.v1.ConfigProto()
    options.gpu_options.allow_growth = True
    options.experimental.executor_type = executor
    graph = tf.Graph()
    session = tf.compat.v1.Session(graph=graph, config=options)
    place = known.path / bundle.SAVED_MODEL
    try:
        with graph.as_default():
            meta = SavedModelLoader(str(place)).load(session, [tf.saved_model.SERVING])
        signature = meta.signature_def[bundle.SIGNATURE]
        wanted = config_pb2.CallableOptions()
        wanted.feed.extend(signature.inputs[field.tensor].name for field in known.signature.inputs)
        wanted.fetch.extend(signature.outputs[field.tensor].name for field in known.signature.outputs)
    except (OSError, ValueError, RuntimeError, KeyError, tf.errors.OpError) as error:
        raise BundleError(f"{place} cannot be loaded: {(str(error).splitlines() or [''])[0]}") from None
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
