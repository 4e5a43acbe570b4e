"""Convert the exported function into a file for LiteRT or ONNX Runtime.

The label is left out: it can be made from the scores, and few engines have strings. If a function cannot be converted,
or its file cannot be loaded, one line says why.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import tensorflow as tf

from stoker.errors import ArgumentError, describe_error
from stoker.serve.bundle import SIGNATURE, BundleError
from stoker.serve.engines import converted
from stoker.serve.export.graph import graph_nodes
from stoker.serve.export.quantized_files import Quantization
from stoker.serve.export.quantizing import quantize
from stoker.serve.signature import Array, Field
from stoker.tf_internals.graphs import freeze
from stoker.tf_internals.types import ConcreteFunction, Tensor

_CONVERTERS = {"litert": "tensorflow", "onnx": "tf2onnx"}
_OPSET = 18


def check(engines: Sequence[str]) -> list[str]:
    """Check the engines asked for, and return each once.

    Raises:
        ArgumentError: there is no such engine, or a package that it needs is not installed.
    """
    for name in engines:
        if name not in converted.FILES:
            raise ArgumentError(f"engine {name!r} is not one of {', '.join(converted.FILES)}")
        for module in (converted.RUNTIMES[name], _CONVERTERS[name]):
            if importlib.util.find_spec(module) is None:
                raise ArgumentError(f"engine {name!r} needs {module}: pip install 'stoker[{name}]'")
    return list(dict.fromkeys(engines))


def convert(
    name: str,
    concrete: ConcreteFunction,
    inputs: Sequence[Field],
    outputs: Sequence[Field],
    file: Path,
    quantization: Quantization | None = None,
    recorded: Sequence[Array] = (),
) -> dict[str, object]:
    """Write the engine's file, and return what the bundle's description says about it.

    `quantization` is for LiteRT only; `recorded` are the inputs of the recorded examples.

    Raises:
        BundleError: the function cannot be converted; the line names the operation that prevents it.
    """
    texts = [field.name for field in inputs if field.dtype == "string"]
    if texts:
        raise BundleError(
            f"engine {name!r} is not available: {texts[0]!r} is text, which only TensorFlow takes"
        )
    free = [field.name for field in inputs if name == "litert" and None in field.shape]
    if free:
        raise BundleError(
            f"engine {name!r} is not available: the size of {free[0]!r} is free, and LiteRT pins it"
        )
    function = _without_label(concrete, inputs, outputs)
    tables = sorted({node.op for node in graph_nodes(concrete) if node.op.startswith("LookupTable")})
    if tables:
        raise BundleError(f"engine {name!r} is not available: it has no {tables[0]}")
    said = io.StringIO()
    entry: dict[str, object] = {"file": file.name}
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), _quiet():
            if name == "litert" and quantization is not None:
                with _saved(function) as directory:
                    made = quantize(function, directory, inputs, outputs, recorded, quantization)
                file.write_bytes(made.content)
                entry["quantized"] = made.report
            else:
                file.write_bytes({"litert": _litert, "onnx": _onnx}[name](function, inputs, outputs))
            converted.LOADERS[name](file, inputs, outputs)
    except BundleError:
        raise
    except Exception as error:  # noqa: BLE001 - converters raise what they like, and the line says what it was
        raise BundleError(f"engine {name!r} is not available: {_reason(error)}") from None
    return entry


def _without_label(
    concrete: ConcreteFunction, inputs: Sequence[Field], outputs: Sequence[Field]
) -> ConcreteFunction:
    def served(**tensors: Tensor) -> dict[str, Tensor]:
        answers = concrete(**tensors)
        return {field.tensor: answers[field.tensor] for field in outputs}

    specs = {one.tensor: tf.TensorSpec([None, *one.shape], one.dtype, name=one.tensor) for one in inputs}
    return tf.function(served, autograph=False).get_concrete_function(**specs)


@contextlib.contextmanager
def _saved(function: ConcreteFunction) -> Iterator[str]:
    """Yield the directory of the function as a SavedModel: the converter keeps names only from a SavedModel."""
    module = tf.Module()
    module.weights = list(function.variables)
    with tempfile.TemporaryDirectory() as directory:
        tf.saved_model.save(module, directory, signatures={SIGNATURE: function})
        yield directory


def _litert(function: ConcreteFunction, inputs: Sequence[Field], outputs: Sequence[Field]) -> bytes:
    with _saved(function) as directory:
        converter = tf.lite.TFLiteConverter.from_saved_model(directory, [SIGNATURE])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        made: bytes = converter.convert()
    return made


def _onnx(function: ConcreteFunction, inputs: Sequence[Field], outputs: Sequence[Field]) -> bytes:
    import tf2onnx

    # Freeze first: a weight that is still a variable would become an input.
    frozen = freeze(function)
    given = {f"{one.tensor}:0": one.tensor for one in inputs}
    # TensorFlow sorts the values of a dict by key.
    wanted = dict(
        zip((one.name for one in frozen.outputs), sorted(one.tensor for one in outputs), strict=True)
    )
    model, _ = tf2onnx.convert.from_graph_def(
        frozen.graph.as_graph_def(),
        input_names=list(given),
        output_names=list(wanted),
        opset=_OPSET,
        tensors_to_rename=given | wanted,
    )
    return bytes(model.SerializeToString())


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Silence the log, to which converters report their progress."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def _reason(error: BaseException) -> str:
    """Pick the reason out of a message of many lines."""
    text = str(error)
    operations = re.findall(r"tf\.(\w+)\(|op: \"?(\w+)\"?|Unsupported ops: (.+)", text)
    named = sorted({one for found in operations for one in found if one})
    if named:
        return f"it has no {', '.join(named[:4])}"
    return describe_error(error)
