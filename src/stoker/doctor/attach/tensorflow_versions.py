"""Which TensorFlow the patches were written for."""

from __future__ import annotations

OLDEST, NEWEST = (2, 17), (2, 21)


def supported(version: str) -> bool:
    """Whether the probes were written for this TensorFlow."""
    try:
        major, minor = (int(part) for part in version.split(".")[:2])
    except ValueError:
        return False
    return OLDEST <= (major, minor) <= NEWEST


def unsupported_message(version: str) -> str:
    """One line for the user."""
    known = f"{OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}"
    return f"TensorFlow {version} is not supported: Stoker measures {known}. Install one of those."
