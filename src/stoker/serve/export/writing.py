"""`stoker.export`: trace, save, record examples, prove the bundle in a new process, then move it into place."""

from __future__ import annotations

import datetime
import os
import platform
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from stoker import signing, storage, version
from stoker.errors import ArgumentError, describe_error
from stoker.serve import bundle
from stoker.serve.bundle import LABEL, SCORES, Bundle, BundleError, BundleWarning, Description
from stoker.serve.engines import converted
from stoker.serve.examples import write as write_examples
from stoker.serve.export import converting
from stoker.serve.export.child import next_prover
from stoker.serve.export.example_rows import draw_rows
from stoker.serve.export.faults import find_restless_layer
from stoker.serve.export.graph import Traced
from stoker.serve.export.intake import Intake, as_tensor, intake_of
from stoker.serve.export.lineage import Exporting, Lineage, lineage_of
from stoker.serve.export.names import leaves_of
from stoker.serve.export.quantized_files import Quantization
from stoker.serve.export.quantizing import BOUND, read_quantization
from stoker.serve.export.statistics import statistics_of
from stoker.serve.placing import make_beside, place_bundle
from stoker.serve.proof import describe_difference, is_identical
from stoker.serve.rows import as_rows
from stoker.serve.safety.opening import seal, write_description
from stoker.serve.signature import Array
from stoker.tf_internals.types import Nest
from stoker.train.execution.model_kinds import check_model
from stoker.units import quantity

_MOST_EXAMPLES = 16


def export(
    model: keras.Model,
    path: str | os.PathLike[str],
    features: object = None,
    *,
    labels: Sequence[object] | None = None,
    examples: object = None,
    evaluation: Mapping[str, float] | None = None,
    lineage: Mapping[str, object] | None = None,
    run: str | None = None,
    store: str | None = None,
    engines: Sequence[str] = (),
    quantize: str = "",
    calibrate: object = None,
    bound: float = BOUND,
    sign: str | os.PathLike[str] | None = None,
    allow_ops: Sequence[str] = (),
    scores_once: bool = False,
    overwrite: bool = False,
) -> Bundle:
    """Write a bundle: the model with pinned names and types, ready to answer anywhere.

    A new process loads the bundle and must give the answers of `model.predict` before the bundle is moved into place;
    otherwise nothing is left behind.

    Args:
        model: a trained Keras model.
        path: the directory of the bundle, or the URL of one (`s3://bucket/model`).
        features: the dataset of `stoker.data` that the model was trained from, or its `features`. The bundle then takes
            raw rows (categories and texts as text, images as their files or as pixels) and gives labels.
        labels: the names of the classes; by default those of the features.
        examples: a few rows to record with their answers; by default drawn from what is known of the inputs.
        evaluation: the scores of the model; by default those of its last epoch or its run.
        lineage: further information about where the model comes from.
        run: the id of the run that trained the model; by default the run of `stoker.fit`, `Trainer` or `Log`.
        store: the URL of the store, if not that of `STOKER_STORE` or `[tool.stoker]`.
        engines: engines besides TensorFlow: "litert", "onnx" (`stoker[litert]`, `stoker[onnx]`).
        quantize: "int8" or "float16": what LiteRT computes with. The bundle's other engines stay as they are.
        calibrate: real rows, of which every second calibrates and the others prove the bound; by default `examples`.
        bound: how far an answer of the quantised model may be off, as a share of its output's largest value.
        sign: a private key file (`stoker bundle --new-key`) to sign the bundle with (`stoker[sign]`).
        allow_ops: operations to allow although they reach outside the model ("ReadFile", ...); whoever loads the bundle
            must allow them too.
        scores_once: if the model's only output is the scores of labelled classes, the bundle gives them once, as
            `scores`, and not under the output's own name as well.
        overwrite: replace an existing bundle.

    Returns:
        The bundle.

    Raises:
        BundleError: the model cannot be exported; the message names the layer.
        ArgumentError: an argument is invalid.
    """
    with place_bundle(path, overwrite) as target:
        _check(model, target, overwrite)
        if sign is not None:
            signing.public_key(sign)  # an invalid key shows now
        engines = converting.check([*engines, "litert"] if quantize else engines)
        known = lineage_of(model, run, store)
        with Exporting(known, model, target) as exporting, next_prover() as prover:
            intake = intake_of(model, features, examples)
            words = labels if labels is not None else intake.labels
            traced = Traced(model, intake, words, labels is not None, scores_once)
            if examples is None and quantize:
                examples = calibrate  # the bound must hold for real rows
            inputs = _examples(intake, features, examples)
            given = examples if calibrate is None else calibrate
            quantization = read_quantization(quantize, bound, intake.fields, given)
            with make_beside(target) as made:
                keras_fault = _save_keras(intake.keras_model, made / bundle.KERAS)
                prover.load(keras=made / bundle.KERAS)
                traced.save(made / bundle.SAVED_MODEL)
                prover.load(saved_model=made / bundle.SAVED_MODEL)
                answers = _answers(traced, inputs)
                exporting.link_model({one.path: one.value for one in model.weights}, str(model.name))
                description = {
                    **_describe(traced, len(inputs[0])),
                    "evaluation": _evaluation(model, evaluation, known),
                    "lineage": {**(lineage or {}), **exporting.describe()},
                    "statistics": statistics_of(intake.fields, features, examples),
                    "keras": {"file": bundle.KERAS, "fault": keras_fault},
                }
                _write_rest(made, traced, inputs, answers, description, engines, quantization)
                proof = prover.prove(made, allow_ops)
                description["keras"]["fault"] = keras_fault = keras_fault or proof["keras"]
                write_description(made, seal(description, sign))
            if not storage.is_url(path):
                exporting.link_bundle()
        if known.fault:
            warnings.warn(known.fault, BundleWarning, stacklevel=2)
        if keras_fault:
            line = f"{target / bundle.KERAS} does not load by itself ({keras_fault}); the bundle answers without it"
            warnings.warn(line, BundleWarning, stacklevel=2)
    return bundle.read(path)


def _write_rest(
    directory: Path,
    traced: Traced,
    inputs: list[Array],
    answers: list[Array],
    description: Description,
    engines: list[str],
    quantization: Quantization | None,
) -> None:
    """Write everything but the models."""
    fields = (traced.signature.inputs, traced.signature.outputs)
    write_examples(
        directory / bundle.EXAMPLES,
        {field.name: array for field, array in zip(fields[0], inputs, strict=True)},
        {field.name: array for field, array in zip(fields[1], answers, strict=True)},
    )
    computed = [one for one in fields[1] if traced.labels is None or one.name != LABEL]
    description["engines"] = {
        name: converting.convert(
            name,
            traced.concrete,
            fields[0],
            computed,
            directory / converted.FILES[name],
            quantization,
            inputs,
        )
        for name in engines
    }
    description["files"] = bundle.hashes(directory)
    write_description(directory, seal(description))


def _check(model: object, target: Path, overwrite: bool) -> None:
    check_model(model, "export")
    if not isinstance(model, keras.Model):
        raise ArgumentError(f"stoker.export takes a keras.Model first, got {type(model).__name__}")
    if target.name in ("", "..") or target.is_symlink():
        raise ArgumentError(f"{target} must be the path of a directory of its own")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / bundle.DESCRIPTION).is_file():
        raise ArgumentError(f"{target} already exists and is not a bundle; choose another path")
    if not overwrite:
        raise ArgumentError(f"{target} exists; overwrite=True (--force) replaces it")


def _examples(intake: Intake, features: object, given: object) -> list[Array]:
    """Return a few rows as an array for each input."""
    if given is None:
        return draw_rows(intake.fields, features)
    if isinstance(given, tf.data.Dataset):
        given = next(iter(given.take(1)))
        given = given[0] if isinstance(given, tuple) else given
        given = tf.nest.map_structure(lambda one: one.numpy(), given)
    rows = as_rows(intake.fields, given)
    if rows.count == 0:
        raise ArgumentError("examples: there are no rows")
    return [array[:_MOST_EXAMPLES] for array in rows.arrays]


def _answers(traced: Traced, inputs: list[Array]) -> list[Array]:
    """Return the answers of `model.predict`, after checking that the traced function gives the same.

    Raises:
        BundleError: the function gives other answers, or `predict` itself answers differently each time.
    """
    model = traced.model
    ready = traced.intake.encode_rows(inputs)
    first, again = _predict(model, ready), _predict(model, ready)
    if not all(map(is_identical, first, again)):
        culprit = find_restless_layer(model, ready) or "a layer"
        raise BundleError(
            f"{culprit} answers the same rows differently each time, also in model.predict: "
            "call it with training=False, or leave it out of what is exported"
        )
    for field, answer in zip(traced.signature.outputs, first, strict=False):
        if len(answer) != len(inputs[0]):
            raise BundleError(
                f"output {field.name!r} has {quantity(len(answer), 'row')} "
                f"for {quantity(len(inputs[0]), 'row')} of input"
            )
    if traced.labels is not None:
        label, scores = traced.labels.arrays(first[0])
        first = [*([] if traced.hides_own_output else first), label, scores]
    fields = traced.signature
    found = traced.concrete(
        **{f.tensor: as_tensor(one) for f, one in zip(fields.inputs, inputs, strict=True)}
    )
    plain = {name: one.numpy() for name, one in found.items()}
    for field, wanted in zip(fields.outputs, first, strict=True):
        difference = describe_difference(field, plain[field.tensor], wanted, {SCORES: plain.get(SCORES)})
        if difference:
            raise BundleError(f"output {field.name!r} {difference} compared with model.predict")
    return first


def _predict(model: keras.Model, ready: Nest) -> list[Array]:
    # Do what `predict` does with a batch, without the pipeline it would make for it.
    leaves = leaves_of(model.predict_on_batch(ready))
    return [one.astype(np.float32) if one.dtype.name == "bfloat16" else one for one in leaves]


def _save_keras(model: keras.Model, file: Path) -> str | None:
    """Write `model.keras`; return why if that failed."""
    try:
        model.save(file, include_optimizer=False)
    except (TypeError, ValueError, NotImplementedError) as error:
        file.unlink(missing_ok=True)
        return describe_error(error)
    return None


def _evaluation(model: keras.Model, given: Mapping[str, float] | None, known: Lineage) -> dict[str, float]:
    """Return the scores that were given, those of the last epoch in this process, or those of the run in the store."""
    if given is not None:
        return {name: float(one) for name, one in given.items()}
    history = getattr(getattr(model, "history", None), "history", None) or {}
    last = {name: float(values[-1]) for name, values in history.items() if len(values)}
    return last or dict(known.evaluation or {})


def _describe(traced: Traced, rows: int) -> Description:
    now = time.time()
    return {
        "schema": bundle.SCHEMA,
        "version": int(now),
        "created": datetime.datetime.fromtimestamp(now, datetime.timezone.utc).isoformat(timespec="seconds"),
        "model": traced.model.name,
        "signature": traced.signature.to_json(),
        "labels": traced.labels.words if traced.labels else None,
        "label_outputs": [LABEL, SCORES] if traced.labels else None,
        "weights": traced.weights(),
        "versions": {
            "stoker": version.__version__,
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
            "python": platform.python_version(),
        },
        "examples": {"file": bundle.EXAMPLES, "rows": rows},
    }
