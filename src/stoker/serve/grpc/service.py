"""Predict: from a request's tensors to the answer's, through the same line as HTTP's requests."""

from __future__ import annotations

import hmac
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import tensorflow as tf

from stoker.errors import ArgumentError, UsageError
from stoker.serve.batching import BusyError, DeadlineError, now
from stoker.serve.bundle import SIGNATURE
from stoker.serve.grpc.messages import PredictRequest, PredictResponse
from stoker.serve.http.app import App
from stoker.serve.http.messages import HttpError
from stoker.serve.http.models import Version
from stoker.serve.http.supervising import Tls
from stoker.serve.rows import Rows, as_rows

_NAME = "tensorflow.serving.PredictionService"
_STATUS = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    404: grpc.StatusCode.NOT_FOUND,
}
_HTTP = {
    grpc.StatusCode.OK: 200,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.INTERNAL: 500,
    **{code: status for status, code in _STATUS.items()},
}


class Service:
    """The calls of one server."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def predict(self, request: Any, context: Any) -> Any:
        """Answer, or end the call with a code and one line."""
        started = now()
        code, line, rows, response = grpc.StatusCode.OK, "", 0, None
        try:
            self._check_token(context)
            version = self._version(request.model_spec)
            version.line.check()
            given = self._rows(version, request)
            rows = given.count
            response = await self._answered(request, version, given)
        except HttpError as error:
            code, line = _STATUS.get(error.status, grpc.StatusCode.INTERNAL), error.line
        except ArgumentError as error:
            code, line = grpc.StatusCode.INVALID_ARGUMENT, str(error)
        except BusyError as error:
            code, line = grpc.StatusCode.RESOURCE_EXHAUSTED, str(error)
        except DeadlineError:
            code, line = grpc.StatusCode.DEADLINE_EXCEEDED, "there was no answer in time"
        except tf.errors.OpError as error:
            code, line = grpc.StatusCode.INTERNAL, f"the model failed: {str(error).splitlines()[0]}"
        if request.model_spec.name in self._app.settings.models:
            self._app.metrics.answered(request.model_spec.name, _HTTP[code], now() - started, rows)
        if response is None:
            await context.abort(code, line)
        return response

    def _check_token(self, context: Any) -> None:
        token = self._app.settings.token
        given = dict(context.invocation_metadata() or ()).get("authorization", "")
        if token and not hmac.compare_digest(str(given).encode(), b"Bearer " + token.encode()):
            raise HttpError(401, "send the server's token as authorization: Bearer TOKEN")

    def _version(self, spec: Any) -> Version:
        if spec.signature_name not in ("", SIGNATURE):
            raise HttpError(
                400, f"signature_name {spec.signature_name!r} is not there; the only one is {SIGNATURE!r}"
            )
        number = str(spec.version.value) if spec.HasField("version") else None
        return self._app.models.version(spec.name, number, spec.version_label or None)

    def _rows(self, version: Version, request: Any) -> Rows:
        given = {}
        for name, tensor in request.inputs.items():
            try:
                given[name] = tf.make_ndarray(tensor)
            except (TypeError, ValueError) as error:
                raise HttpError(400, f"{name!r} is no tensor: {str(error).splitlines()[0]}") from None
        rows = as_rows(version.predictor.bundle.signature.inputs, given)
        if rows.alone:
            raise HttpError(400, "an input's first size must be the number of rows")
        self._app.check_limits(version, rows)
        return rows

    async def _answered(self, request: Any, version: Version, rows: Rows) -> Any:
        fields = {field.name: field for field in version.predictor.bundle.signature.outputs}
        for name in request.output_filter:
            if name not in fields:
                raise HttpError(400, f"there is no output {name!r}; there are {', '.join(fields)}")
        answers = await version.line.ask(rows.arrays, rows.count, self._app.settings.timeout)
        response = PredictResponse()
        response.model_spec.name = request.model_spec.name
        response.model_spec.version.value = version.number
        response.model_spec.signature_name = SIGNATURE
        for (name, field), array in zip(fields.items(), answers, strict=True):
            if not request.output_filter or name in request.output_filter:
                plain = np.asarray(array)
                tensor = tf.make_tensor_proto(
                    plain.tolist() if plain.dtype == object else plain, field.dtype, plain.shape
                )
                response.outputs[name].MergeFromString(tensor.SerializeToString())
        return response


async def started(app: App, address: str, tls: Tls) -> Any:
    """A server that listens; `bound` is its port.

    Raises:
        UsageError: it cannot have the address.
    """
    most = [("grpc.max_receive_message_length", app.settings.body_bytes)]
    server = grpc.aio.server(options=most)
    handler = grpc.unary_unary_rpc_method_handler(
        Service(app).predict,
        request_deserializer=PredictRequest.FromString,
        response_serializer=PredictResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_NAME, {"Predict": handler}),))
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
