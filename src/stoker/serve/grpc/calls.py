"""The base of all gRPC services: calls pass messages to the data plane, and errors become gRPC's codes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import grpc
from google.protobuf.message import DecodeError

from stoker.serve.batching import now
from stoker.serve.grpc.messages import make_pool, message_class
from stoker.serve.http.admission import check_token
from stoker.serve.plane.answering import DataPlane, Inquiry
from stoker.serve.plane.errors import RequestError
from stoker.tf_internals.types import ProtoMessage

_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.RESOURCE_EXHAUSTED,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}
Work = Callable[[Inquiry, ProtoMessage, ProtoMessage], Awaitable[None]]
"""A call of one message: it gets a request and fills an empty response."""
StreamWork = Callable[[Inquiry, ProtoMessage], AsyncIterator[ProtoMessage]]
"""What a stream answers to one of its messages."""


class GrpcService:
    """One service: its full name, the name that clients use if that differs, and the work of its calls."""

    name: str
    served_as = ""
    open_to_all = False  # whether no token is needed, as for health checks

    def __init__(self, plane: DataPlane) -> None:
        self.plane, self.settings = plane, plane.settings

    def calls(self) -> dict[str, Work]:
        """Return the calls of one message, by name."""
        raise NotImplementedError

    def streams(self) -> dict[str, StreamWork]:
        """Return the calls that stream, by name."""
        return {}

    def name_model(self, request: ProtoMessage) -> str:
        """Return the model that a request names; "" for none."""
        return ""

    def make_handler(self) -> grpc.GenericRpcHandler:
        """Return the service in the form that gRPC takes."""
        handlers = {}
        methods = {one.name: one for one in make_pool().FindServiceByName(self.name).methods}
        for name, work in self.calls().items():
            request, response = methods[name].input_type.full_name, methods[name].output_type.full_name
            handlers[name] = grpc.stream_unary_rpc_method_handler(
                self._respond(name, work, message_class(request), message_class(response)),
                response_serializer=_serialize,
            )
        for name, stream in self.streams().items():
            handlers[name] = grpc.stream_stream_rpc_method_handler(
                self._respond_in_stream(name, stream, message_class(methods[name].input_type.full_name)),
                response_serializer=_serialize,
            )
        return grpc.method_handlers_generic_handler(self.served_as or self.name, handlers)

    def _respond(
        self,
        name: str,
        work: Work,
        request_class: Callable[[], ProtoMessage],
        response_class: Callable[[], ProtoMessage],
    ) -> Callable[[object, grpc.aio.ServicerContext], Awaitable[ProtoMessage]]:
        """Return a handler that answers a call, or ends it with a code and one line.

        The handler takes a stream and reads one message from it, so it can refuse a call before its message is read.
        """

        async def respond(_: object, context: grpc.aio.ServicerContext) -> ProtoMessage:
            inquiry, request, response = self._begin_inquiry(name, context), request_class(), response_class()
            error: RequestError | None = None
            size = 0
            try:
                self._check_token(context)
                data = await self._read_message(context)
                if data is None:
                    raise RequestError(400, "there is no message")
                size = len(data)
                self._begin(inquiry, request, data)
                await work(inquiry, request, response)
            except Exception as fault:  # noqa: BLE001 - one request must not take the server with it
                error = self.plane.explain(fault, inquiry)
            finally:
                self.plane.release(inquiry)
            self.plane.count(inquiry, 200 if error is None else error.status, size)
            if error is not None:
                await context.abort(_CODES.get(error.status, grpc.StatusCode.INTERNAL), error.line)
            return response

        return respond

    def _respond_in_stream(
        self, name: str, work: StreamWork, request_class: Callable[[], ProtoMessage]
    ) -> Callable[[object, grpc.aio.ServicerContext], AsyncIterator[ProtoMessage]]:
        """Return a handler that answers the messages of a stream one after another, as long as they come."""

        async def respond(_: object, context: grpc.aio.ServicerContext) -> AsyncIterator[ProtoMessage]:
            try:
                self._check_token(context)
                while (data := await self._read_message(context, in_stream=True)) is not None:
                    inquiry, request = self._begin_inquiry(name, context), request_class()
                    try:
                        self._begin(inquiry, request, data)
                        async for answer in work(inquiry, request):
                            yield answer
                    finally:
                        self.plane.release(inquiry)
            except RequestError as error:
                await context.abort(_CODES.get(error.status, grpc.StatusCode.INTERNAL), error.line)

        return respond

    def _begin_inquiry(self, name: str, context: grpc.aio.ServicerContext) -> Inquiry:
        inquiry, tracer = Inquiry("gRPC", started=now()), self.plane.tracer
        if tracer is not None and tracer.is_on:
            metadata = context.invocation_metadata() or ()
            inquiry.trace = tracer.begin_grpc(self.served_as or self.name, name, metadata, inquiry.started)
        return inquiry

    def _begin(self, inquiry: Inquiry, request: ProtoMessage, data: bytes) -> None:
        """Parse a message that has arrived. Done here, as gRPC would answer an invalid one with a traceback."""
        self.plane.hold(inquiry, len(data))
        inquiry.started = now()
        try:
            request.ParseFromString(data)
        except DecodeError:
            raise RequestError(400, f"the message is not a valid {request.DESCRIPTOR.name}") from None
        inquiry.model = self.name_model(request)

    async def _read_message(self, context: grpc.aio.ServicerContext, in_stream: bool = False) -> bytes | None:
        """Read the next message of a call; None if there is none. Within a stream, there is no time limit."""
        limit = None if in_stream else self.settings.body_timeout
        try:
            data = await asyncio.wait_for(context.read(), limit)
        except asyncio.TimeoutError:
            raise RequestError(408, f"the message did not arrive within {limit:g} s") from None
        return None if data is grpc.aio.EOF else bytes(data)

    def _check_token(self, context: grpc.aio.ServicerContext) -> None:
        if self.settings.token and not self.open_to_all:
            given = dict(context.invocation_metadata() or ()).get("authorization", "")
            check_token(self.settings.token, str(given).encode())


def _serialize(message: ProtoMessage) -> bytes:
    serialized: bytes = message.SerializeToString()
    return serialized
