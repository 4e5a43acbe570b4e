"""Prove a bundle: it must give its recorded answers, the same twice, for single rows and for batches of odd sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from stoker.data.layer_names import any_column_names
from stoker.errors import describe_error, first_line
from stoker.serve import bundle, examples
from stoker.serve.batching import Run
from stoker.serve.bundle import Bundle, BundleError, Proof
from stoker.serve.engines import converted, tensorflow
from stoker.serve.examples import Arrays
from stoker.serve.safety.keras_files import KerasFileError, check_keras_file
from stoker.serve.safety.opening import Trust, open_bundle
from stoker.serve.signature import Array, Field
from stoker.tf_internals.keras_layers import input_structure
from stoker.tf_internals.types import Model, Nest, SavedModelObject

# How far answers may differ, relative to the largest: the order of a sum depends on the number of rows.
_TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float64": 1e-5}
_OTHER_TOLERANCE = 1e-4
NOTHING_MORE: Mapping[str, float] = {}
_MIXED = ": an answer depends on the other rows of its batch (padding without a mask, a layer that looks at all rows)"


def prove(
    path: Path,
    *,
    lenient: bool = False,
    early: Mapping[str, SavedModelObject] | None = None,
    trust: Trust | None = None,
) -> Proof:
    """Check a bundle's files, and the answers of every engine it has.

    Args:
        path: the bundle.
        lenient: leave out engines that are not installed.
        early: models of the bundle that are already loaded, by their names in `LOADERS`.
        trust: what the bundle may contain, and who must have signed it.

    Returns:
        The findings.

    Raises:
        BundleError: the bundle differs from what was exported; one line says how.
    """
    early = early or {}
    known = open_bundle(path, trust)
    recordings = read_recordings(known)
    run = tensorflow.function(known, early.get("saved_model"))
    try:
        rows = _prove(known, run, recordings, "")
        for name in converted.names_of(known):
            if not lenient or converted.is_installed(name):
                engine, allowed = converted.load_engine(known, name), converted.allowed_of(known, name)
                _prove(known, engine, recordings, f"engine {name!r}: ", allowed)
    except BundleError:
        raise
    except Exception as error:  # noqa: BLE001 - an engine raises what it likes when a model is not as it is described
        raise BundleError(f"{path} cannot answer its own examples: {first_line(error)}") from None
    return {"rows": rows, "keras": _keras_fault(known, *recordings, early.get("keras"))}


def _prove(
    known: Bundle,
    run: Run,
    recordings: tuple[Arrays, Arrays],
    who: str,
    allowed: Mapping[str, float] = NOTHING_MORE,
) -> int:
    """Run every recorded example twice, alone and in batches, and return how many there are."""
    inputs, answers = recordings
    rows = len(next(iter(inputs.values())))
    for what, first, last in _batches(rows):
        given = [inputs[field.name][first:last] for field in known.signature.inputs]
        found = dict(zip((field.name for field in known.signature.outputs), run(given), strict=True))
        for field in known.signature.outputs:
            wanted = answers[field.name][first:last]
            difference = describe_difference(field, found[field.name], wanted, found, allowed)
            if difference:
                why = "" if last - first == rows else _MIXED
                raise BundleError(f"{who}output {field.name!r} {difference}, for {what}{why}")
        for field, again in zip(known.signature.outputs, run(given), strict=True):
            if not is_identical(found[field.name], again):
                raise BundleError(f"{who}output {field.name!r} differs in a second call, for {what}")
    return rows


def read_recordings(known: Bundle) -> tuple[Arrays, Arrays]:
    """Read the inputs and answers of the recorded examples, by name.

    Raises:
        BundleError: the examples cannot be read, or belong to another model.
    """
    file = known.path / bundle.EXAMPLES
    try:
        inputs, answers = examples.read(file)
    except (OSError, ValueError) as error:
        raise BundleError(f"{file} cannot be read: {first_line(error)}") from None
    names = (
        {field.name for field in known.signature.inputs},
        {field.name for field in known.signature.outputs},
    )
    if (set(inputs), set(answers)) != names:
        raise BundleError(f"{file} does not have the inputs and outputs of {bundle.DESCRIPTION}")
    rows = {len(one) if one.ndim else 0 for one in (*inputs.values(), *answers.values())}
    if len(rows) != 1 or rows == {0}:
        raise BundleError(f"{file} is damaged: its inputs and answers have different numbers of rows")
    for field in known.signature.inputs:
        found = inputs[field.name]
        kind = "string" if found.dtype == object else found.dtype.name
        sizes = found.shape[1:]
        fits = len(sizes) == len(field.shape) and all(
            wanted in (None, size) for wanted, size in zip(field.shape, sizes, strict=True)
        )
        if kind != field.dtype or not fits:
            raise BundleError(f"{file} has {kind} {list(sizes)} for the input {field}")
    return inputs, answers


def describe_difference(
    field: Field,
    found: Array,
    wanted: Array,
    beside: Mapping[str, Array | None],
    allowed: Mapping[str, float] = NOTHING_MORE,
) -> str:
    """Describe how an answer differs from the wanted one; empty if it does not.

    `allowed` is how much further outputs may be off if the engine is quantised. A label may then differ if its score is
    within twice that.
    """
    if found.shape != wanted.shape:
        return f"has shape {list(found.shape)} instead of {list(wanted.shape)}"
    if found.dtype.kind not in "fc":
        differing = (found != wanted).reshape(len(found), -1).any(-1).tolist()
        odd = [row for row, differs in enumerate(differing) if differs and not _is_tied(row, beside, allowed)]
        return f"is {found[odd[0]]!r} instead of {wanted[odd[0]]!r} in row {odd[0] + 1}" if odd else ""
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    if not np.array_equal(np.isfinite(one), np.isfinite(other)):
        return "is not finite where it should be, or the reverse"
    one, other = np.nan_to_num(one), np.nan_to_num(other)
    largest = max(float(np.abs(other).max(initial=0.0)), 1e-3)
    distance = float(np.abs(one - other).max(initial=0.0))
    most = largest * _TOLERANCE.get(field.dtype, _OTHER_TOLERANCE) + allowed.get(field.name, 0.0)
    return f"is off by {distance:.3g} (of {largest:.3g})" if distance > most else ""


def _is_tied(row: int, beside: Mapping[str, Array | None], allowed: Mapping[str, float]) -> bool:
    """Return whether two classes have the same score except for the last digits, so that either label is right."""
    scores = beside.get("scores")
    if scores is None or scores.ndim != 2 or scores.shape[1] < 2:
        return False
    second, first = np.sort(scores[row].astype(np.float64))[-2:]
    return bool(first - second <= _OTHER_TOLERANCE + 2 * allowed.get("scores", 0.0))


def _batches(rows: int) -> Iterator[tuple[str, int, int]]:
    yield "the only row" if rows == 1 else f"all {rows} rows at once", 0, rows
    for row in range(rows):
        yield f"row {row + 1} alone", row, row + 1
    for size in (3, 7):
        if size < rows:
            yield f"{size} rows", rows - size, rows


def is_identical(one: Array, other: Array) -> bool:
    """Return whether two answers are the same to the last bit; NaN equals NaN."""
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def _explain_keras(error: Exception) -> str:
    """Return Keras' reason in one line; the name it could not find is deep in its message."""
    if isinstance(error, KerasFileError):
        return str(error)
    unknown = re.search(r"Could not locate \w+ '([^']+)'", str(error))
    if unknown:
        return f"it needs {unknown[1]!r}, which only the program that made it has"
    return describe_error(error)


def _load_keras(file: Path) -> Model:
    import keras

    check_keras_file(file)
    with any_column_names():
        # Load in safe mode: a file must not bring code with it.
        return keras.models.load_model(file, compile=False, safe_mode=True)


LOADERS: dict[str, Callable[[Path], SavedModelObject]] = {
    "saved_model": tensorflow.load_saved_model,
    "keras": _load_keras,
}


def _keras_fault(known: Bundle, inputs: Arrays, answers: Arrays, early: Model = None) -> str | None:
    """Say why `model.keras` does not load here by itself, or answers differently; None if nothing is wrong with it."""
    import tensorflow as tf

    file = known.path / bundle.KERAS
    if not file.exists():
        return "it could not be written"
    try:
        model = _load_keras(file) if early is None else early
        ordered = [inputs[field.name] for field in known.signature.inputs]
        given = [tf.constant(one) for one in ordered]
        names = [field.name for field in known.signature.inputs]
        takes = input_structure(model)
        x: Nest = dict(zip(names, given, strict=True)) if isinstance(takes, dict) else given
        # Do not use `predict`: tracing it would take longer than everything else.
        outputs = model(x if len(given) > 1 or isinstance(x, dict) else given[0], training=False)
    except Exception as error:  # noqa: BLE001 - whatever a file of the user's layers raises is the answer
        return _explain_keras(error)
    found = tf.nest.flatten(outputs)
    for field, one in zip(_own_outputs(known), found, strict=False):
        difference = describe_difference(field, np.asarray(one), answers[field.name], {})
        if difference:
            return f"output {field.name!r} {difference}"
    return None


def _own_outputs(known: Bundle) -> list[Field]:
    """Return the model's own outputs, from which the others were made: the scores, if they are given only once."""
    outputs = known.signature.outputs
    own = [field for field in outputs if field.name not in (bundle.LABEL, bundle.SCORES)]
    return own or [field for field in outputs if field.name == bundle.SCORES]
