"""The first calls of a model: the requests that came with it, and a trial of answering several requests together.

A SavedModel may hold requests in `assets.extra/tf_serving_warmup_requests`, as TensorFlow Serving reads them. A model
that takes rows may not answer each row independently: through padding, or a mean over the batch, one request can change
the answer of another. So requests share a call only after a trial gave rows the same answers alone and together.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError

from stoker.errors import first_line
from stoker.logs import LOGGER
from stoker.serve.batching import now
from stoker.serve.bundle import SIGNATURE, BundleError
from stoker.serve.foreign.loading import LoadedSignature
from stoker.serve.grpc.messages import serving_message
from stoker.serve.plane.served import EXAMPLES
from stoker.serve.rows import as_tensors
from stoker.serve.signature import Array, TensorField
from stoker.tf_internals.types import ProtoMessage

REQUESTS = Path("assets.extra", "tf_serving_warmup_requests")
_MOST_REQUESTS = 1000
_TRIAL_ROWS = 3
_FREE_SIZE = 4
_WORDS = (b"one", b"two words", b"three short words")
Warmed = dict[str, list[list[Array]]]
"""The tensors that signatures were called with, by name."""


def answer_recorded_requests(loaded: Iterable[LoadedSignature], place: Path, repeats: int = 1) -> Warmed:
    """Answer the requests that came with a model.

    Raises:
        BundleError: the requests cannot be read, or the model does not answer one.
    """
    by_name = {one.name: one for one in loaded}
    asked: Warmed = {}
    file = place / REQUESTS
    if not file.is_file():
        return asked
    number = 0
    try:
        for record in _read_records(file):
            number += 1
            for name, given in _questions(record):
                signature = by_name[name]
                rows = as_tensors(signature.inputs, given, joins=False)
                for _ in range(repeats):
                    signature.run(rows.arrays)
                asked.setdefault(name, []).append(rows.arrays)
    except (tf.errors.OpError, DecodeError, KeyError, ValueError, TypeError) as error:
        reason = f"no signature {error}" if isinstance(error, KeyError) else first_line(error)
        raise BundleError(f"{file}: the model does not answer request {number}: {reason}") from None
    return asked


def _read_records(file: Path) -> Iterator[ProtoMessage]:
    data = tf.data.TFRecordDataset(str(file))
    for one in itertools.islice(data.as_numpy_iterator(), _MOST_REQUESTS):
        log = serving_message("PredictionLog")
        log.ParseFromString(one)
        yield log


def _questions(log: ProtoMessage) -> Iterator[tuple[str, dict[str, Array]]]:
    """Yield the signatures that a recorded request calls, each with its tensors."""
    kind = log.WhichOneof("log_type")
    if kind is None:
        return
    request = getattr(log, kind).request
    if kind == "predict_log":
        tensors = {name: tf.make_ndarray(one) for name, one in request.inputs.items()}
        yield request.model_spec.signature_name or SIGNATURE, tensors
        return
    examples = {EXAMPLES: serialize_examples(request.input)}
    specs = (
        [task.model_spec for task in request.tasks] if kind == "multi_inference_log" else [request.model_spec]
    )
    for spec in specs:
        yield spec.signature_name or SIGNATURE, examples


def serialize_examples(given: ProtoMessage) -> Array:
    """Serialize the examples of an `Input` as models parse them, each with the features of the context."""
    kind = given.WhichOneof("kind")
    held = given.example_list_with_context if kind == "example_list_with_context" else given.example_list
    found = np.empty(len(held.examples), object)
    for place, example in enumerate(held.examples):
        if kind != "example_list_with_context":
            found[place] = example.SerializeToString()
            continue
        whole = type(example)()
        whole.CopyFrom(held.context)
        whole.MergeFrom(example)
        for name, feature in example.features.feature.items():
            whole.features.feature[name].CopyFrom(feature)  # replaces the context's feature
        found[place] = whole.SerializeToString()
    return found


def time_and_try_joining(signature: LoadedSignature, asked: Warmed) -> tuple[bool, float | None]:
    """Return whether rows get the same answers alone and together, and the seconds of a call, if one was made."""
    if not signature.may_join:
        return False, None
    recorded = _join_recorded(asked.get(signature.name, []))
    rows = recorded or _make_up_rows(signature)
    if rows is None:
        return False, None
    try:
        together = signature.run(rows)
        count = len(rows[0])
        alone = [signature.run([one[place : place + 1] for one in rows]) for place in range(count)]
        started = now()
        signature.run([one[:1] for one in rows])
        seconds = now() - started
    except Exception as error:  # noqa: BLE001 - a model may refuse rows that were made up however it likes
        if recorded:
            LOGGER.warning(
                "signature %r: recorded requests fail when answered together, so each is answered alone: %s",
                signature.name,
                first_line(error),
            )
        return False, None
    joined = (np.concatenate(parts) for parts in zip(*alone, strict=True))
    return all(_is_same(one, other) for one, other in zip(together, joined, strict=True)), seconds


def _join_recorded(asked: list[list[Array]]) -> list[Array] | None:
    """Return the first rows of the recorded requests; None if there are too few, or if their shapes differ."""
    shapes = {tuple(array.shape[1:] for array in arrays) for arrays in asked}
    if len(shapes) == 1 and all(array.ndim for arrays in asked for array in arrays):
        joined = [np.concatenate(parts)[:_TRIAL_ROWS] for parts in zip(*asked, strict=True)]
        if joined and {len(one) for one in joined} == {_TRIAL_ROWS}:
            return joined
    return None


def _make_up_rows(signature: LoadedSignature) -> list[Array] | None:
    """Return a few rows; None if there is an input of a type for which none can be made up."""
    random = np.random.default_rng(0)
    made = [_make_up(field, random) for field in signature.inputs]
    return None if any(one is None for one in made) else [one for one in made if one is not None]


def _make_up(field: TensorField, random: np.random.Generator) -> Array | None:
    sizes = (_TRIAL_ROWS, *(_FREE_SIZE if size is None else size for size in (field.declared or ())[1:]))
    if field.dtype == "string":
        words = np.array(_WORDS, object).reshape(-1, *(1,) * (len(sizes) - 1))
        repeated: Array = np.broadcast_to(words, sizes).copy()
        return repeated
    dtype = np.dtype(field.dtype)
    if dtype.kind in "iu":
        return random.integers(0, 3, sizes).astype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, sizes).astype(dtype)
    return random.standard_normal(sizes).astype(dtype) if dtype.kind == "f" else None


def _is_same(one: Array, other: Array) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind != "f":
        return bool(np.array_equal(one, other))
    largest = float(np.nanmax(np.abs(other), initial=1e-3))
    return bool(np.allclose(one, other, rtol=1e-4, atol=1e-5 * largest, equal_nan=True))
