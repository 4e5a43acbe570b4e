"""The server's sockets: listening on an address of its own, and refusing new connections before it ends."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import socket
import struct
import sys

from stoker.errors import UsageError

_BACKLOG = 2048
_SO_ATTACH_FILTER = 26
# Classic BPF over the TCP header: drop packets with SYN and no ACK, which begin a connection; keep all others.
_NO_NEW_CONNECTIONS = (
    (0x30, 0, 0, 13),  # load the flags
    (0x54, 0, 0, 0x12),  # keep only SYN and ACK
    (0x15, 0, 1, 0x02),  # only SYN?
    (0x06, 0, 0, 0),  # then drop it
    (0x06, 0, 0, 0xFFFFFFFF),
)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 picks a free port.

    Raises:
        UsageError: the address is taken or invalid.
    """
    try:
        found = _bound(host, port)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on {host}:{port}: {_explain(error)}") from None
    found.listen(_BACKLOG)
    found.set_inheritable(True)
    return found


def _bound(host: str, port: int, shared: bool = False) -> socket.socket:
    # Event loops send small answers at once (TCP_NODELAY) only on sockets that name TCP as their protocol.
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        found.bind((host, port))
    except BaseException:
        found.close()
        raise
    return found


def reserve(host: str, port: int) -> socket.socket:
    """Reserve an address for several processes of one server, which share it through SO_REUSEPORT (as gRPC does).

    A second server could otherwise join them and get some of the requests. While this socket is open, a second server's
    reservation fails.

    Raises:
        UsageError: another server has the address.
    """
    try:
        with contextlib.closing(_bound(host, port)) as alone:
            alone.listen()  # fails if any other process listens there
            alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            kept = _bound(host, port, shared=True)
        # From now on, no process without SO_REUSEPORT can listen here, even before this server's first process does.
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on {host}:{port} for gRPC: {_explain(error)}") from None
    return kept


def _explain(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return "the port is in use; choose another"
    return str(error.strerror or error) if isinstance(error, OSError) else str(error)


def refuse_connections(sock: socket.socket) -> None:
    """Refuse new connections; connections already begun can still be accepted.

    Closing a listening socket resets the connections that were not accepted yet, and loses requests that were already
    sent on them. If the system has no such filter, that small risk remains.
    """
    if not sys.platform.startswith("linux"):
        return
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in _NO_NEW_CONNECTIONS))
    program = struct.pack("HP", len(_NO_NEW_CONNECTIONS), ctypes.addressof(code))
    with contextlib.suppress(OSError):  # a sandbox that forbids filters
        sock.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)
