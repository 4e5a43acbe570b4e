"""The calls of PredictionService and ModelService, through the same line as HTTP's requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError

from stoker.errors import ArgumentError, UsageError
from stoker.serve.batching import BusyError, DeadlineError, now
from stoker.serve.bundle import SIGNATURE
from stoker.serve.grpc.messages import CLASSES, PACKAGE
from stoker.serve.grpc.tensors import rows_of_examples, rows_of_tensors, tensor_of
from stoker.serve.http import limits
from stoker.serve.http.admission import check_token
from stoker.serve.http.app import App
from stoker.serve.http.messages import HttpError, Request
from stoker.serve.http.models import Version
from stoker.serve.http.supervising import Tls
from stoker.serve.http.tensorflow_rest import classes, numbers
from stoker.serve.rows import Rows

_STATUS = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    503: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
_HTTP = {
    **{code: status for status, code in _STATUS.items()},
    grpc.StatusCode.OK: 200,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.INTERNAL: 500,
}
_AVAILABLE = 30
_CLASSIFY, _REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"
# Service, call, the handler's name, request and response.
CALLS = (
    ("PredictionService", "Predict", "predict", "PredictRequest", "PredictResponse"),
    ("PredictionService", "Classify", "classify", "ClassificationRequest", "ClassificationResponse"),
    ("PredictionService", "Regress", "regress", "RegressionRequest", "RegressionResponse"),
    ("PredictionService", "MultiInference", "multi_inference", "MultiInferenceRequest", "MultiInferenceResponse"),
    ("PredictionService", "GetModelMetadata", "metadata", "GetModelMetadataRequest", "GetModelMetadataResponse"),
    ("ModelService", "GetModelStatus", "status", "GetModelStatusRequest", "GetModelStatusResponse"),
)  # fmt: skip


class Service:
    """The calls of one server. Each gets a request and an empty response, fills it, and gives the number of rows."""

    def __init__(self, app: App) -> None:
        self._app = app

    def handler(
        self, work: Callable[[Any, Any], Awaitable[int]], request_class: Any, response_class: Any
    ) -> Callable[[Any, Any], Awaitable[Any]]:
        """A call as gRPC makes it: it is answered, or ends with a code and one line.

        It is made for a stream, of which it reads one message: so it can refuse a call before its message is read.
        """

        async def answered(_: Any, context: Any) -> Any:
            started = now()
            code, line, rows = grpc.StatusCode.OK, "", 0
            request, response = request_class(), response_class()
            held = Request("POST", "gRPC", {}, b"")
            try:
                self._check_token(context)
                data = await self._message(context)
                self._app.admission.hold(held, len(data))
                started = now()
                # Here, and not by gRPC, which answers what is no message with a traceback.
                request.ParseFromString(data)
                rows = await work(request, response)
            except DecodeError:
                code, line = grpc.StatusCode.INVALID_ARGUMENT, f"that is no {request_class.DESCRIPTOR.name}"
            except HttpError as error:
                code, line = _STATUS.get(error.status, grpc.StatusCode.INTERNAL), error.line
            except ArgumentError as error:
                code, line = grpc.StatusCode.INVALID_ARGUMENT, str(error)
            except BusyError as error:
                code, line = grpc.StatusCode.RESOURCE_EXHAUSTED, str(error)
            except DeadlineError:
                code, line = grpc.StatusCode.DEADLINE_EXCEEDED, "there was no answer in time"
            except Exception as error:  # noqa: BLE001 - one request must not take the server with it
                code, line = grpc.StatusCode.INTERNAL, self._app.failed(error, "gRPC", _name(request))
            finally:
                self._app.admission.release(held)
            name = _name(request)
            if name in self._app.settings.models:
                self._app.metrics.answered(name, _HTTP[code], now() - started, rows)
            if code is not grpc.StatusCode.OK:
                await context.abort(code, line)
            return response

        return answered

    async def predict(self, request: Any, response: Any) -> int:
        """Tensors to tensors."""
        version = self._version(request.model_spec)
        version.line.check()
        signature = version.predictor.bundle.signature
        rows = await self._converted(
            version,
            request.ByteSize(),
            lambda: rows_of_tensors(signature.inputs, request.inputs, self._app.settings),
        )
        fields = {field.name: field for field in signature.outputs}
        for name in request.output_filter:
            if name not in fields:
                raise HttpError(400, f"there is no output {name!r}; there are {', '.join(fields)}")
        answers = await self._ask(request.model_spec.name, version, rows)
        _said(response.model_spec, request.model_spec.name, version)
        for (name, field), array in zip(fields.items(), answers, strict=True):
            if not request.output_filter or name in request.output_filter:
                response.outputs[name].MergeFromString(tensor_of(field, array))
        return rows.count

    async def classify(self, request: Any, response: Any) -> int:
        """Examples to labels with their scores, the best first."""
        version = self._version(request.model_spec)
        found, count = await self._examples(request.model_spec.name, version, request.input)
        _classified(response.result, classes(request.model_spec.name, version, found))
        _said(response.model_spec, request.model_spec.name, version)
        return count

    async def regress(self, request: Any, response: Any) -> int:
        """Examples to a number each."""
        version = self._version(request.model_spec)
        found, count = await self._examples(request.model_spec.name, version, request.input)
        _regressed(response.result, numbers(request.model_spec.name, version, found))
        _said(response.model_spec, request.model_spec.name, version)
        return count

    async def multi_inference(self, request: Any, response: Any) -> int:
        """The same examples, classified or regressed by several models."""
        if not request.tasks:
            raise HttpError(400, "there are no tasks")
        given = getattr(request.input, request.input.WhichOneof("kind") or "example_list")
        limits.check_rows(len(request.tasks) * len(given.examples), self._app.settings)
        count = 0
        for task in request.tasks:
            version = self._version(task.model_spec)
            found, rows = await self._examples(task.model_spec.name, version, request.input)
            result = response.results.add()
            if task.method_name == _CLASSIFY:
                _classified(result.classification_result, classes(task.model_spec.name, version, found))
            elif task.method_name == _REGRESS:
                _regressed(result.regression_result, numbers(task.model_spec.name, version, found))
            else:
                raise HttpError(400, f"method_name {task.method_name!r} must be {_CLASSIFY} or {_REGRESS}")
            _said(result.model_spec, task.model_spec.name, version)
            count += rows
        return count

    async def metadata(self, request: Any, response: Any) -> int:
        """The signature."""
        odd = [name for name in request.metadata_field if name != "signature_def"]
        if odd or not request.metadata_field:
            raise HttpError(400, f"metadata_field must be signature_def, got {odd[0] if odd else 'none'!r}")
        version = self._version(request.model_spec)
        made = CLASSES["SignatureDefMap"]()
        made.signature_def[SIGNATURE].MergeFromString(_signature(version).SerializeToString())
        packed = response.metadata["signature_def"]
        packed.type_url = f"type.googleapis.com/{PACKAGE}.SignatureDefMap"
        packed.value = made.SerializeToString()
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version.number
        return 0

    async def status(self, request: Any, response: Any) -> int:
        """Which versions answer."""
        spec = request.model_spec
        one = spec.HasField("version") or spec.version_label
        versions = [self._version(spec)] if one else self._app.models.versions(spec.name)
        for version in versions:
            told = response.model_version_status.add(version=version.number, state=_AVAILABLE)
            told.status.error_code = 0
        return 0

    async def _message(self, context: Any) -> bytes:
        """The one message of a call."""
        limit = self._app.settings.body_timeout
        try:
            data = await asyncio.wait_for(context.read(), limit)
        except asyncio.TimeoutError:
            raise HttpError(408, f"the message did not arrive within {limit:g} s") from None
        if data is grpc.aio.EOF:
            raise HttpError(400, "there is no message")
        return bytes(data)

    async def _converted(self, version: Version, size: int, convert: Callable[[], Rows]) -> Rows:
        """Rows within the limits; many bytes are converted where they hold up nobody."""

        def work() -> Rows:
            rows = convert()
            limits.check_converted(version.predictor.bundle.signature.inputs, rows, self._app.settings)
            return rows

        if not self._app.is_large(size, version):
            return work()
        found: Rows = await self._app.aside(work)
        return found

    async def _ask(self, name: str, version: Version, rows: Rows) -> list[Any]:
        found = await version.line.ask(rows.arrays, rows.count, self._app.settings.timeout)
        if self._app.deployment.chosen():
            self._app.sampled("", name, version, rows, version.predictor.named(found))
        return found

    async def _examples(self, name: str, version: Version, given: Any) -> tuple[dict[str, Any], int]:
        version.line.check()
        inputs = version.predictor.bundle.signature.inputs
        rows = await self._converted(
            version, given.ByteSize(), lambda: rows_of_examples(inputs, given, self._app.settings)
        )
        return version.predictor.named(await self._ask(name, version, rows)), rows.count

    def _check_token(self, context: Any) -> None:
        if self._app.settings.token:
            given = dict(context.invocation_metadata() or ()).get("authorization", "")
            check_token(self._app.settings.token, str(given).encode())

    def _version(self, spec: Any) -> Version:
        if spec.signature_name not in ("", SIGNATURE):
            raise HttpError(
                400, f"signature_name {spec.signature_name!r} is not there; the only one is {SIGNATURE!r}"
            )
        number = str(spec.version.value) if spec.HasField("version") else None
        return self._app.models.version(spec.name, number, spec.version_label or None)


def _name(request: Any) -> str:
    spec = getattr(request, "model_spec", None)
    if spec is None:
        spec = request.tasks[0].model_spec if request.tasks else None
    return "" if spec is None else str(spec.name)


def _said(spec: Any, name: str, version: Version) -> None:
    spec.name = name
    spec.version.value = version.number
    spec.signature_name = SIGNATURE


def _classified(result: Any, found: list[list[tuple[str, float]]]) -> None:
    for row in found:
        one = result.classifications.add()
        for label, score in row:
            one.classes.add(label=label, score=score)


def _regressed(result: Any, found: Any) -> None:
    for value in found:
        result.regressions.add(value=float(value))


def _signature(version: Version) -> Any:
    """As TensorFlow describes it."""
    made = tf.compat.v1.saved_model.build_signature_def(method_name="tensorflow/serving/predict")
    signature = version.predictor.bundle.signature
    for fields, infos in ((signature.inputs, made.inputs), (signature.outputs, made.outputs)):
        for field in fields:
            info = infos[field.name]
            info.name = f"{SIGNATURE}_{field.tensor}:0"
            info.dtype = tf.as_dtype(field.dtype).as_datatype_enum
            info.tensor_shape.CopyFrom(tf.TensorShape([None, *field.shape]).as_proto())
    return made


async def started(app: App, address: str, tls: Tls, shared: bool = False) -> Any:
    """A server that listens; `bound` is its port, which other processes may have, too, if it is `shared`.

    Raises:
        UsageError: it cannot have the address.
    """
    options = [
        ("grpc.max_receive_message_length", app.settings.body_bytes),
        ("grpc.so_reuseport", int(shared)),
    ]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=app.settings.connections)
    service = Service(app)
    for home in dict.fromkeys(call[0] for call in CALLS):
        handlers = {
            name: grpc.stream_unary_rpc_method_handler(
                service.handler(getattr(service, work), CLASSES[request], CLASSES[response]),
                response_serializer=CLASSES[response].SerializeToString,
            )
            for of, name, work, request, response in CALLS
            if of == home
        }
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(f"{PACKAGE}.{home}", handlers),)
        )
    try:
        if tls.certificate:
            pair = (Path(tls.key).read_bytes(), Path(tls.certificate).read_bytes())
            server.bound = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
        else:
            server.bound = server.add_insecure_port(address)
    except RuntimeError:
        raise UsageError(f"cannot listen on {address} for gRPC: is it in use?") from None
    await server.start()
    return server
