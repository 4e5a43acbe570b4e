"""Tell whether a server is reachable only from this machine, and under which names.

A page from elsewhere can make its own name point to this machine (DNS rebinding), and so read a local server's answers.
It cannot have any of the names below.
"""

from __future__ import annotations

import ipaddress

NAMES = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host: str) -> bool:
    """Return whether only this machine can connect to this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def name_of(host: str) -> str:
    """Return a Host header without its port, in lower case."""
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdecimal() else host.strip().lower()
