"""gRPC's own services: health checks, and reflection, which tells clients such as grpcurl which services there are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor import FileDescriptor

from stoker.serve.grpc.calls import GrpcService, StreamWork, Work
from stoker.serve.grpc.messages import INFERENCE, SERVING, make_pool, message_class
from stoker.serve.plane.answering import Inquiry
from stoker.serve.plane.errors import RequestError
from stoker.tf_internals.types import ProtoMessage

_HEALTH, _REFLECTION = "grpc.health.v1", "grpc.reflection.v1"
_SERVICES = (
    f"{SERVING}.PredictionService",
    f"{SERVING}.ModelService",
    f"{INFERENCE}.GRPCInferenceService",
    f"{_HEALTH}.Health",
    f"{_REFLECTION}.ServerReflection",
)
_SERVING, _NOT_SERVING = 1, 2
_NOT_FOUND, _UNIMPLEMENTED = 5, 12
# How often a watching client is told of a change, if there is one.
_LOOK_S = 0.5


class HealthService(GrpcService):
    """Says whether the server takes requests; load balancers ask without a token."""

    name = f"{_HEALTH}.Health"
    open_to_all = True

    def calls(self) -> dict[str, Work]:
        return {"Check": self.check}

    def streams(self) -> dict[str, StreamWork]:
        return {"Watch": self.watch}

    async def check(self, inquiry: Inquiry, request: ProtoMessage, response: ProtoMessage) -> None:
        """Report the health of the server, or of one of its services, which is the same."""
        if request.service and request.service not in _SERVICES:
            raise RequestError(
                404, f"there is no service {request.service!r}; the services are {', '.join(_SERVICES)}"
            )
        response.status = self._status()

    def _status(self) -> int:
        return _SERVING if self.plane.is_serving() else _NOT_SERVING

    async def watch(self, inquiry: Inquiry, request: ProtoMessage) -> AsyncIterator[ProtoMessage]:
        """Yield the health now, and again whenever it changes."""
        last = None
        while True:
            status = self._status()
            if status != last:
                last = status
                yield message_class(f"{_HEALTH}.HealthCheckResponse")(status=status)
            await asyncio.sleep(_LOOK_S)


class ReflectionService(GrpcService):
    """Describes the services, with the files that define their messages."""

    name = f"{_REFLECTION}.ServerReflection"

    def calls(self) -> dict[str, Work]:
        return {}

    def streams(self) -> dict[str, StreamWork]:
        return {"ServerReflectionInfo": self.tell}

    async def tell(self, inquiry: Inquiry, request: ProtoMessage) -> AsyncIterator[ProtoMessage]:
        """Answer one question of a client."""
        answer = message_class(f"{_REFLECTION}.ServerReflectionResponse")()
        answer.valid_host = request.host
        answer.original_request.CopyFrom(request)
        kind = request.WhichOneof("message_request")
        try:
            if kind == "list_services":
                for name in _SERVICES:
                    answer.list_services_response.service.add(name=name)
            elif kind == "file_by_filename":
                _add_files(answer, make_pool().FindFileByName(request.file_by_filename))
            elif kind == "file_containing_symbol":
                _add_files(answer, make_pool().FindFileContainingSymbol(request.file_containing_symbol))
            else:
                answer.error_response.error_code = _UNIMPLEMENTED
                answer.error_response.error_message = "proto3 has no extensions"
        except KeyError:
            answer.error_response.error_code = _NOT_FOUND
            answer.error_response.error_message = f"there is no {getattr(request, str(kind))!r}"
        yield answer


class ReflectionServiceAlpha(ReflectionService):
    """The same service under the name that older clients ask for."""

    served_as = "grpc.reflection.v1alpha.ServerReflection"


def _add_files(answer: ProtoMessage, file: FileDescriptor) -> None:
    """Add a file, and everything that it imports."""
    waiting, known = [file], set()
    while waiting:
        one = waiting.pop()
        if one.name in known:
            continue
        known.add(one.name)
        copy = descriptor_pb2.FileDescriptorProto()
        one.CopyToProto(copy)
        answer.file_descriptor_response.file_descriptor_proto.append(copy.SerializeToString())
        waiting += one.dependencies
