"""Whether a server is reachable only from this machine, and under which names.

A page from elsewhere can have its own name point to this machine (DNS rebinding) and so read a local server's answers;
the names below are the ones it cannot have.
"""

from __future__ import annotations

import ipaddress

NAMES = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to such an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def name_of(host: str) -> str:
    """A Host header without its port, in lower case."""
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdecimal() else host.strip().lower()
