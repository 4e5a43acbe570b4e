"""Free ports, below the range of outgoing connections, so that none is taken before a worker listens on it."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from stoker.units import quantity

_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")
_LOWEST, _USUAL_OUTGOING = 12_000, 32_768


def find_free_ports(count: int) -> list[int]:
    """Pick `count` different free ports.

    Raises:
        OSError: there are not enough free ports.
    """
    candidates = list(range(_LOWEST, _read_first_outgoing()))
    random.SystemRandom().shuffle(candidates)
    found: list[int] = []
    for port in candidates:
        if len(found) == count:
            return found
        if _is_free(port):
            found.append(port)
    raise OSError(f"could not find {quantity(count, 'free port')}")


def is_listening(port: int) -> bool:
    """Return whether a process on this machine listens on the port."""
    return is_reachable(f"127.0.0.1:{port}")


def is_reachable(address: str) -> bool:
    """Return whether a process listens on host:port."""
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


def _read_first_outgoing() -> int:
    try:
        first = int(_OUTGOING.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return _USUAL_OUTGOING
    return first if first > _LOWEST + 1000 else _USUAL_OUTGOING
