"""The calls of PredictionService and ModelService, answered by the same data plane as HTTP's requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import tensorflow as tf
from google.protobuf.message import DecodeError

from stoker.errors import UsageError
from stoker.serve.batching import now
from stoker.serve.bundle import SIGNATURE
from stoker.serve.grpc.messages import CLASSES, PACKAGE
from stoker.serve.grpc.tensors import rows_of_examples, rows_of_tensors, tensor_of
from stoker.serve.http.admission import check_token
from stoker.serve.http.tensorflow_rest import classes, numbers
from stoker.serve.plane import limits
from stoker.serve.plane.answering import Answers, DataPlane, Inquiry, Parsed, Question
from stoker.serve.plane.errors import RequestError
from stoker.serve.plane.models import Version
from stoker.tf_internals.types import ProtoMessage

_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.RESOURCE_EXHAUSTED,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
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
FillResult = Callable[[ProtoMessage, str, Version, Answers], None]
Work = Callable[[Inquiry, ProtoMessage, ProtoMessage], Awaitable[None]]


class Service:
    """The calls of one server. Each gets a request and fills an empty response."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane, self._settings = plane, plane.settings

    def handler(
        self,
        work: Work,
        request_class: Callable[[], ProtoMessage],
        response_class: Callable[[], ProtoMessage],
    ) -> Callable[[object, grpc.aio.ServicerContext], Awaitable[ProtoMessage]]:
        """A handler for gRPC, which answers a call or ends it with a code and one line.

        It takes a stream and reads one message of it, so it can refuse a call before its message is read.
        """

        async def respond(_: object, context: grpc.aio.ServicerContext) -> ProtoMessage:
            inquiry, request, response = Inquiry("gRPC", started=now()), request_class(), response_class()
            error: RequestError | None = None
            size = 0
            try:
                self._check_token(context)
                data = await self._read_message(context)
                size = len(data)
                self._plane.hold(inquiry, size)
                inquiry.started = now()
                # Parsed here: gRPC would answer an invalid message with a traceback.
                request.ParseFromString(data)
                inquiry.model = _model_of(request)
                await work(inquiry, request, response)
            except DecodeError:
                error = RequestError(400, f"the message is not a valid {request.DESCRIPTOR.name}")
            except Exception as fault:  # noqa: BLE001 - one request must not take the server with it
                error = self._plane.explain(fault, inquiry)
            finally:
                self._plane.release(inquiry)
            self._plane.count(inquiry, 200 if error is None else error.status, size)
            if error is not None:
                await context.abort(_CODES.get(error.status, grpc.StatusCode.INTERNAL), error.line)
            return response

        return respond

    async def predict(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Tensors to tensors."""
        spec = request.model_spec
        version = self._version(spec)
        fields = {field.name: field for field in version.predictor.bundle.signature.outputs}

        def parse() -> Parsed[None]:
            rows = rows_of_tensors(version.inputs, request.inputs, self._settings)
            for name in request.output_filter:
                if name not in fields:
                    raise RequestError(400, f"there is no output {name!r}; there are {', '.join(fields)}")
            return Parsed(rows, fill)

        def fill(answers: Answers) -> None:
            _fill_spec(response.model_spec, spec.name, version)
            for name, array in answers.items():
                if not request.output_filter or name in request.output_filter:
                    response.outputs[name].MergeFromString(tensor_of(fields[name], array))

        await self._plane.ask(inquiry, Question(spec.name, version, request.ByteSize(), parse))

    async def classify(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Examples to labels with their scores, the best first."""
        await self._ask_examples(inquiry, request.model_spec, request.input, response, _fill_classes)

    async def regress(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Examples to a number each."""
        await self._ask_examples(inquiry, request.model_spec, request.input, response, _fill_numbers)

    async def multi_inference(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """The same examples, classified or regressed by several models."""
        if not request.tasks:
            raise RequestError(400, "there are no tasks")
        given = getattr(request.input, request.input.WhichOneof("kind") or "example_list")
        limits.check_rows(len(request.tasks) * len(given.examples), self._settings)
        for task in request.tasks:
            if task.method_name not in _METHODS:
                raise RequestError(400, f"method_name {task.method_name!r} must be {_CLASSIFY} or {_REGRESS}")
            attribute, fill = _METHODS[task.method_name]
            result = response.results.add()
            await self._ask_examples(inquiry, task.model_spec, request.input, result, fill, attribute)

    async def metadata(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """The signature."""
        odd = [name for name in request.metadata_field if name != "signature_def"]
        if odd or not request.metadata_field:
            raise RequestError(
                400, f"metadata_field must be signature_def, got {odd[0] if odd else 'none'!r}"
            )
        version = self._version(request.model_spec)
        made = CLASSES["SignatureDefMap"]()
        made.signature_def[SIGNATURE].MergeFromString(_signature(version).SerializeToString())
        packed = response.metadata["signature_def"]
        packed.type_url = f"type.googleapis.com/{PACKAGE}.SignatureDefMap"
        packed.value = made.SerializeToString()
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version.number

    async def status(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Which versions answer."""
        spec = request.model_spec
        one = spec.HasField("version") or spec.version_label
        for version in [self._version(spec)] if one else self._plane.models.versions(spec.name):
            status = response.model_version_status.add(version=version.number, state=_AVAILABLE)
            status.status.error_code = 0

    async def _read_message(self, context: grpc.aio.ServicerContext) -> bytes:
        """The one message of a call."""
        limit = self._settings.body_timeout
        try:
            data = await asyncio.wait_for(context.read(), limit)
        except asyncio.TimeoutError:
            raise RequestError(408, f"the message did not arrive within {limit:g} s") from None
        if data is grpc.aio.EOF:
            raise RequestError(400, "there is no message")
        return bytes(data)

    async def _ask_examples(
        self,
        inquiry: Inquiry,
        spec: ProtoMessage,
        given: ProtoMessage,
        response: ProtoMessage,
        fill: FillResult,
        attribute: str = "result",
    ) -> None:
        """Have a model answer examples; `fill` puts its answers into an attribute of the response."""
        version = self._version(spec)

        def parse() -> Parsed[None]:
            return Parsed(rows_of_examples(version.inputs, given, self._settings), encode)

        def encode(answers: Answers) -> None:
            fill(getattr(response, attribute), spec.name, version, answers)
            _fill_spec(response.model_spec, spec.name, version)

        await self._plane.ask(inquiry, Question(spec.name, version, given.ByteSize(), parse))

    def _check_token(self, context: grpc.aio.ServicerContext) -> None:
        if self._settings.token:
            given = dict(context.invocation_metadata() or ()).get("authorization", "")
            check_token(self._settings.token, str(given).encode())

    def _version(self, spec: ProtoMessage) -> Version:
        if spec.signature_name not in ("", SIGNATURE):
            raise RequestError(
                400, f"signature_name {spec.signature_name!r} is not there; the only one is {SIGNATURE!r}"
            )
        number = str(spec.version.value) if spec.HasField("version") else None
        return self._plane.models.version(spec.name, number, spec.version_label or None)


def _model_of(request: ProtoMessage) -> str:
    spec = getattr(request, "model_spec", None)
    if spec is None:
        spec = request.tasks[0].model_spec if request.tasks else None
    return "" if spec is None else str(spec.name)


def _fill_spec(spec: ProtoMessage, name: str, version: Version) -> None:
    spec.name = name
    spec.version.value = version.number
    spec.signature_name = SIGNATURE


def _fill_classes(result: ProtoMessage, name: str, version: Version, answers: Answers) -> None:
    for row in classes(name, version, answers):
        one = result.classifications.add()
        for label, score in row:
            one.classes.add(label=label, score=score)


def _fill_numbers(result: ProtoMessage, name: str, version: Version, answers: Answers) -> None:
    for value in numbers(name, version, answers):
        result.regressions.add(value=float(value))


_METHODS: dict[str, tuple[str, FillResult]] = {
    _CLASSIFY: ("classification_result", _fill_classes),
    _REGRESS: ("regression_result", _fill_numbers),
}


def _signature(version: Version) -> ProtoMessage:
    """The signature in TensorFlow's form."""
    made = tf.compat.v1.saved_model.build_signature_def(method_name="tensorflow/serving/predict")
    signature = version.predictor.bundle.signature
    for fields, infos in ((signature.inputs, made.inputs), (signature.outputs, made.outputs)):
        for field in fields:
            info = infos[field.name]
            info.name = f"{SIGNATURE}_{field.tensor}:0"
            info.dtype = tf.as_dtype(field.dtype).as_datatype_enum
            info.tensor_shape.CopyFrom(tf.TensorShape([None, *field.shape]).as_proto())
    return made


async def start_server(plane: DataPlane, address: str, shared: bool = False) -> tuple[grpc.aio.Server, int]:
    """Start a server, and return it with its port; other processes may listen there, too, if it is `shared`.

    Raises:
        UsageError: it cannot have the address.
    """
    options = [
        ("grpc.max_receive_message_length", plane.settings.body_bytes),
        ("grpc.so_reuseport", int(shared)),
    ]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=plane.settings.connections)
    service = Service(plane)
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
        settings = plane.settings
        if settings.tls_certificate:
            pair = (Path(settings.tls_key).read_bytes(), Path(settings.tls_certificate).read_bytes())
            port = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
        else:
            port = server.add_insecure_port(address)
    except RuntimeError:
        raise UsageError(f"cannot listen on {address} for gRPC: is it in use?") from None
    await server.start()
    return server, port
