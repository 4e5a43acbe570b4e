"""Run the SavedModel: in a session, which takes a tenth of the time for one row; as its function; or with XLA.

A session does not check its arguments, and runs a small graph in the caller's thread; graphs with loops need the
session's own threads. All engines take any number of rows without tracing again, and any number of threads at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf

from stoker.errors import first_line
from stoker.serve import bundle
from stoker.serve.batching import Run
from stoker.serve.bundle import Bundle, BundleError
from stoker.serve.engines import converted
from stoker.serve.engines.padding import pad_rows
from stoker.serve.signature import Array
from stoker.tf_internals.saving import load_into_session, session_callable
from stoker.tf_internals.types import ConcreteFunction, ProtoMessage, SavedModelObject, Tensor


def load_saved_model(place: Path) -> SavedModelObject:
    """Load a SavedModel."""
    return tf.saved_model.load(str(place))


def load_function(known: Bundle, early: SavedModelObject = None) -> ConcreteFunction:
    """Return the SavedModel's function; `early` is the SavedModel, if it is already loaded.

    Raises:
        BundleError: it cannot be loaded, or takes other inputs than the description says.
    """
    place = known.path / bundle.SAVED_MODEL
    try:
        model = load_saved_model(place) if early is None else early
        function = model.signatures[bundle.SIGNATURE]
    except Exception as error:  # noqa: BLE001 - TensorFlow raises whatever it meets first in a damaged graph
        raise BundleError(f"{place} cannot be loaded: {first_line(error)}") from None
    function.owner = model  # keeps its variables alive
    takes = {name: spec.dtype.name for name, spec in function.structured_input_signature[1].items()}
    said = {field.tensor: field.dtype for field in known.signature.inputs}
    if takes != said:
        raise BundleError(f"{place} takes {takes}, but {bundle.DESCRIPTION} says {said}")
    return function


def function(known: Bundle, early: SavedModelObject = None) -> Run:
    """Run the SavedModel's function; `early` is the SavedModel, if it is already loaded."""
    called = load_function(known, early)
    inputs = [field.tensor for field in known.signature.inputs]
    outputs = [field.tensor for field in known.signature.outputs]

    def run(arrays: list[Array]) -> list[Array]:
        given = {name: tf.constant(array) for name, array in zip(inputs, arrays, strict=True)}
        answers = called(**given)
        return [answers[name].numpy() for name in outputs]

    return run


def xla(known: Bundle) -> Run:
    """Run the SavedModel's function, compiled for each power of two of rows. XLA has no strings, hence no labels."""
    called = load_function(known)
    inputs = [field.tensor for field in known.signature.inputs]
    outputs = [field.tensor for field in converted.computed_outputs(known)]

    @tf.function(jit_compile=True, autograph=False)  # type: ignore[untyped-decorator]
    def compiled(*tensors: Tensor) -> list[Tensor]:
        answers = called(**dict(zip(inputs, tensors, strict=True)))
        return [answers[name] for name in outputs]

    run = pad_rows(lambda arrays, rows: [one.numpy() for one in compiled(*map(tf.constant, arrays))])
    return converted.add_labels(run, known)


def session(known: Bundle, executor: str) -> Run:
    """Run the SavedModel in a session. `executor` names TensorFlow's other executor; "" uses the session's threads."""
    with open_session(known.path / bundle.SAVED_MODEL, [tf.saved_model.SERVING], executor) as (made, meta):
        signature = meta.signature_def[bundle.SIGNATURE]
        feeds = [signature.inputs[field.tensor].name for field in known.signature.inputs]
        fetches = [signature.outputs[field.tensor].name for field in known.signature.outputs]
        return session_callable(made, feeds, fetches)


@contextmanager
def open_session(
    place: Path, tags: Sequence[str], executor: str = ""
) -> Iterator[tuple[object, ProtoMessage]]:
    """Load a SavedModel into a session; yield the session and the meta graph. An error in the block closes the session.

    Raises:
        BundleError: the model cannot be loaded, or the block failed.
    """
    options = tf.compat.v1.ConfigProto()
    options.gpu_options.allow_growth = True
    options.experimental.executor_type = executor
    graph = tf.Graph()
    made = tf.compat.v1.Session(graph=graph, config=options)
    try:
        with graph.as_default():
            meta = load_into_session(made, str(place), tags)
        yield made, meta
    except BundleError:
        made.close()
        raise
    except Exception as error:  # noqa: BLE001 - TensorFlow raises whatever it meets first in a damaged graph
        made.close()
        raise BundleError(f"{place} cannot be loaded: {first_line(error)}") from None
