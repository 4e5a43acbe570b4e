"""Ports that are free: below those that outgoing connections take, so that none is taken before a worker listens."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _USUAL_OUTGOING = 12_000, 32_768


def free(count: int) -> list[int]:
    """So many different ports on which nobody listens now.

    Raises:
        OSError: there are not that many.
    """
    candidates = list(range(_LOWEST, _first_outgoing()))
    random.SystemRandom().shuffle(candidates)
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            return found
        if _is_free(port):
            found.append(port)
    raise OSError(f"{count} free ports are not to be had")


def listening(port: int) -> bool:
    """Whether somebody on this machine listens there."""
    return answers(f"127.0.0.1:{port}")


def answers(address: str) -> bool:
    """Whether somebody listens at host:port."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1.0):
            return True
    except OSError:
        return False


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True


def _first_outgoing() -> int:
    try:
        first = int(_OUTGOING.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL_OUTGOING
    return first if first > _LOWEST + 1000 else _USUAL_OUTGOING
