"""The gRPC server: all services on one port, and on a Unix socket if asked."""

from __future__ import annotations

from pathlib import Path

import grpc

from stoker.errors import UsageError
from stoker.serve.grpc.open_inference import InferenceService
from stoker.serve.grpc.prediction import ModelService, PredictionService
from stoker.serve.grpc.system import HealthService, ReflectionService, ReflectionServiceAlpha
from stoker.serve.plane.answering import DataPlane

SERVICES = (
    PredictionService, ModelService, InferenceService, HealthService, ReflectionService, ReflectionServiceAlpha,
)  # fmt: skip


async def start_server(plane: DataPlane, address: str, shared: bool = False) -> tuple[grpc.aio.Server, int]:
    """Start a server, and return it with its port. If it is `shared`, other processes may listen on the port, too.

    Raises:
        UsageError: the server cannot listen on the address.
    """
    settings = plane.settings
    options: list[tuple[str, int | str]] = [
        *(
            (name, int(one) if one.lstrip("-").isdigit() else one)
            for name, one in settings.grpc_arguments.items()
        ),
        ("grpc.max_receive_message_length", settings.body_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.so_reuseport", int(shared)),
    ]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=settings.connections)
    server.add_generic_rpc_handlers([service(plane).make_handler() for service in SERVICES])
    try:
        if settings.tls_certificate:
            pair = (Path(settings.tls_key).read_bytes(), Path(settings.tls_certificate).read_bytes())
            port = server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
        else:
            port = server.add_insecure_port(address)
        if settings.grpc_socket:
            address = f"unix:{settings.grpc_socket}"
            server.add_insecure_port(address)
    except RuntimeError:
        raise UsageError(f"cannot listen on {address} for gRPC: is it in use?") from None
    await server.start()
    return server, port
