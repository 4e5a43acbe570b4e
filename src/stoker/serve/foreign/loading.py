"""Load a SavedModel into a TensorFlow session, as TensorFlow Serving does, or a LiteRT file into an interpreter."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from stoker.errors import ArgumentError, first_line
from stoker.serve.batching import Run
from stoker.serve.bundle import SIGNATURE, BundleError
from stoker.serve.engines.converted import is_installed
from stoker.serve.engines.tensorflow import open_session
from stoker.serve.foreign import signatures
from stoker.serve.foreign.places import LITERT
from stoker.serve.signature import Array, TensorField
from stoker.tf_internals.saving import session_callable
from stoker.tf_internals.types import ProtoMessage

_NOTED_SIGNATURES = b"signature_defs_metadata"


class RefusedTensorError(ArgumentError):
    """The model cannot take the tensors of a request."""


@dataclass(frozen=True)
class LoadedSignature:
    """A signature with the function that computes it.

    Attributes:
        name: the name that requests use.
        definition: TensorFlow's `SignatureDef`.
        run: computes arrays in the order of `outputs` from arrays in the order of `inputs`.
        may_join: whether nothing in it prevents several requests from being answered together.
        any_rows: whether it takes any number of rows even if it declares one, as LiteRT's interpreter is resized.
    """

    name: str
    definition: ProtoMessage
    run: Run
    may_join: bool
    any_rows: bool = False

    @property
    def inputs(self) -> tuple[TensorField, ...]:
        """The tensors it takes."""
        return signatures.read_fields(self.definition.inputs)

    @property
    def outputs(self) -> tuple[TensorField, ...]:
        """The tensors it gives."""
        return signatures.read_fields(self.definition.outputs)


def load_saved_model(place: Path, tags: Sequence[str]) -> list[LoadedSignature]:
    """Load a SavedModel with all its signatures.

    Raises:
        BundleError: the model cannot be loaded, or has no signature.
    """
    _register_text_operations()
    with open_session(place, list(tags) or [tf.saved_model.SERVING]) as (session, meta):
        found = signatures.list_signatures(meta)
        signatures.require_signatures(found, place)
        return [_load_signature(session, meta, name, one) for name, one in found.items()]


def _register_text_operations() -> None:
    """Register the operations of TensorFlow Text if it is installed; TensorFlow Serving has them, too."""
    if importlib.util.find_spec("tensorflow_text") is not None:
        importlib.import_module("tensorflow_text")


def _load_signature(
    session: object, meta: ProtoMessage, name: str, definition: ProtoMessage
) -> LoadedSignature:
    inputs, outputs = map(signatures.read_fields, (definition.inputs, definition.outputs))
    fetches = [field.tensor for field in outputs]
    call = session_callable(session, [field.tensor for field in inputs], fetches)

    def run(arrays: list[Array]) -> list[Array]:
        try:
            return call(arrays)
        except (tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError) as error:
            raise RefusedTensorError(f"the model cannot take these inputs: {first_line(error)}") from None

    free = signatures.leaves_rows_free(inputs) and signatures.leaves_rows_free(outputs)
    return LoadedSignature(name, definition, run, free and signatures.only_reads(meta, fetches))


def load_litert(place: Path) -> list[LoadedSignature]:
    """Load a LiteRT file: its signatures, or its tensors under their own names if it has none.

    Raises:
        BundleError: the file cannot be loaded, or LiteRT is not installed.
    """
    if not is_installed("litert"):
        raise BundleError(f"{place / LITERT} needs LiteRT: pip install 'stoker[litert]'")
    try:
        interpreter = _Interpreter(place / LITERT)
        return [interpreter.load_signature(name) for name in interpreter.names]
    except (OSError, ValueError, RuntimeError, KeyError) as error:
        raise BundleError(f"{place / LITERT} cannot be loaded: {first_line(error)}") from None


class _Interpreter:
    """LiteRT's interpreter. One caller uses it at a time; it is resized when a request's shapes differ."""

    def __init__(self, file: Path) -> None:
        from ai_edge_litert.interpreter import Interpreter

        self._interpreter = Interpreter(model_path=str(file))
        self._interpreter.allocate_tensors()
        self._lock = threading.Lock()
        self._noted = {} if self._interpreter.get_signature_list() else _read_noted_signatures(file)
        self.names = list(self._interpreter.get_signature_list()) or list(self._noted) or [SIGNATURE]

    def load_signature(self, name: str) -> LoadedSignature:
        """Return a signature with its function."""
        takes, gives = self._details(name)
        made = tf.compat.v1.saved_model.build_signature_def(method_name="tensorflow/serving/predict")
        for details, infos in ((takes, made.inputs), (gives, made.outputs)):
            for key, one in details.items():
                info = infos[key]
                info.name, info.dtype = one["name"], tf.as_dtype(one["dtype"]).as_datatype_enum
                sizes = [None if size < 0 else int(size) for size in one["shape_signature"]]
                info.tensor_shape.CopyFrom(tf.TensorShape(sizes).as_proto())
        given = [int(takes[key]["index"]) for key in sorted(takes)]
        wanted = [int(gives[key]["index"]) for key in sorted(gives)]
        return LoadedSignature(
            name, made, lambda arrays: self._run(given, wanted, arrays), may_join=False, any_rows=True
        )

    def _details(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        if self._interpreter.get_signature_list():
            runner = self._interpreter.get_signature_runner(name)
            return runner.get_input_details(), runner.get_output_details()
        takes = {one["name"]: one for one in self._interpreter.get_input_details()}
        gives = {one["name"]: one for one in self._interpreter.get_output_details()}
        if name not in self._noted:
            return takes, gives
        noted = self._noted[name]
        return (
            {key: takes[info.name.removesuffix(":0")] for key, info in noted.inputs.items()},
            {key: gives[info.name.removesuffix(":0")] for key, info in noted.outputs.items()},
        )

    def _run(self, given: list[int], wanted: list[int], arrays: list[Array]) -> list[Array]:
        with self._lock:
            try:
                shapes = {one["index"]: tuple(one["shape"]) for one in self._interpreter.get_input_details()}
                for place, array in zip(given, arrays, strict=True):
                    if shapes.get(place) != array.shape:
                        self._interpreter.resize_tensor_input(place, array.shape)
                self._interpreter.allocate_tensors()
                for place, array in zip(given, arrays, strict=True):
                    self._interpreter.set_tensor(place, array)
                self._interpreter.invoke()
                return [self._interpreter.get_tensor(place) for place in wanted]
            except (ValueError, RuntimeError) as error:
                raise RefusedTensorError(f"the model cannot take these inputs: {first_line(error)}") from None


def _read_noted_signatures(file: Path) -> dict[str, ProtoMessage]:
    """Read the signatures that TensorFlow Serving notes in LiteRT files older than LiteRT's own signatures."""
    from ai_edge_litert import schema_py_generated as schema
    from flatbuffers import flexbuffers

    model = schema.Model.GetRootAsModel(file.read_bytes(), 0)
    found = {}
    for number in range(model.MetadataLength()):
        entry = model.Metadata(number)
        if entry.Name() == _NOTED_SIGNATURES:
            noted = flexbuffers.GetRoot(model.Buffers(entry.Buffer()).DataAsNumpy().tobytes()).AsMap
            for key in noted.Keys:
                made = tf.compat.v1.saved_model.build_signature_def()
                made.ParseFromString(noted[key.AsKey].AsStringBytes)
                found[key.AsKey] = made
    return found
