"""The SavedModel: in a session, in which a row takes a tenth of the time, as its function, or compiled by XLA.

A session is called without a look at its arguments, and runs a small graph in the caller's thread. Graphs with loops
need the session's threads. All take any number of rows without tracing again, and any number of threads at once.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from stoker.serve import bundle
from stoker.serve.batching import Run
from stoker.serve.bundle import Bundle, BundleError
from stoker.serve.engines import converted
from stoker.serve.engines.padding import padded
from stoker.serve.proof import first_line, loaded
from stoker.tf_internals.saving import load_into_session, session_callable


def function(known: Bundle) -> Run:
    """The SavedModel's function."""
    called = loaded(known)
    inputs = [field.tensor for field in known.signature.inputs]
    outputs = [field.tensor for field in known.signature.outputs]

    def run(arrays: list[Any]) -> list[Any]:
        given = {name: tf.constant(array) for name, array in zip(inputs, arrays, strict=True)}
        answers = called(**given)
        return [answers[name].numpy() for name in outputs]

    return run


def xla(known: Bundle) -> Run:
    """The SavedModel's function, compiled for each power of two of rows. XLA has no strings, so none for labels."""
    called = loaded(known)
    inputs = [field.tensor for field in known.signature.inputs]
    outputs = [field.tensor for field in converted.computed(known)]

    @tf.function(jit_compile=True, autograph=False)  # type: ignore[untyped-decorator]
    def compiled(*tensors: Any) -> list[Any]:
        answers = called(**dict(zip(inputs, tensors, strict=True)))
        return [answers[name] for name in outputs]

    run = padded(lambda arrays, rows: [one.numpy() for one in compiled(*map(tf.constant, arrays))])
    return converted.labelled(run, known)


def session(known: Bundle, executor: str) -> Run:
    """A session; `executor` is "" for its own threads, or the name of TensorFlow's other one."""
    options = tf.compat.v1.ConfigProto()
    options.gpu_options.allow_growth = True
    options.experimental.executor_type = executor
    graph = tf.Graph()
    made = tf.compat.v1.Session(graph=graph, config=options)
    place = known.path / bundle.SAVED_MODEL
    try:
        with graph.as_default():
            meta = load_into_session(made, str(place), [tf.saved_model.SERVING])
        signature = meta.signature_def[bundle.SIGNATURE]
        feeds = [signature.inputs[field.tensor].name for field in known.signature.inputs]
        fetches = [signature.outputs[field.tensor].name for field in known.signature.outputs]
    except Exception as error:  # noqa: BLE001 - TensorFlow raises whatever it meets first in a damaged graph
        raise BundleError(f"{place} cannot be loaded: {first_line(error)}") from None
    return session_callable(made, feeds, fetches)
