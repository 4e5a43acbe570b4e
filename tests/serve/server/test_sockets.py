"""An address belongs to one server; the last connections before its end are not lost."""

from __future__ import annotations

import socket
import sys

import pytest

from stoker.errors import UsageError
from stoker.serve.server import sockets


def test_an_address_is_reserved_for_the_processes_of_one_server() -> None:
    with sockets.listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    with sockets.reserve("127.0.0.1", port):
        # Another server fails, before a process of the first one listens and after.
        for _ in range(2):
            with pytest.raises(UsageError, match=rf"cannot listen on 127\.0\.0\.1:{port} for gRPC"):
                sockets.reserve("127.0.0.1", port)
            worker = socket.socket()
            worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            worker.bind(("127.0.0.1", port))
            worker.listen()
        worker.close()


def test_a_server_that_listens_alone_is_not_joined() -> None:
    with sockets.listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with pytest.raises(UsageError, match="for gRPC"):
            sockets.reserve("127.0.0.1", port)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux filters what a socket gets")
def test_connections_that_have_begun_are_accepted_and_others_do_not_begin() -> None:
    with sockets.listen("127.0.0.1", 0) as listening:
        place = listening.getsockname()
        with socket.create_connection(place) as early:
            sockets.refuse_connections(listening)
            late = socket.socket()
            late.setblocking(False)
            assert late.connect_ex(place) != 0
            early.sendall(b"asked")
            accepted, _ = listening.accept()
            assert accepted.recv(5) == b"asked"
            accepted.sendall(b"answered")
            assert early.recv(8) == b"answered"
            listening.setblocking(False)
            with pytest.raises(BlockingIOError):
                listening.accept()
            accepted.close()
            late.close()
