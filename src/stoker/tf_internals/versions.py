"""The versions of TensorFlow and Keras that Stoker supports.

It uses private names of both, which any release may change.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class SupportedVersions:
    """The releases of a library that the tests have run on.

    Attributes:
        library: its name, as people write it.
        oldest: the oldest release, with as many numbers as matter.
        newest: the newest release, likewise; it includes releases that only add a number.
        does: what Stoker does with it.
    """

    library: str
    oldest: tuple[int, ...]
    newest: tuple[int, ...]
    does: str

    def includes(self, version: str) -> bool:
        """Return whether a release is supported."""
        found = parse(version)
        return self.oldest <= found and found[: len(self.newest)] <= self.newest

    def refusal(self, version: str) -> str:
        """Return one line that tells the user that a release is not supported."""
        known = f"{spell(self.oldest)} to {spell(self.newest)}"
        return f"{self.library} {version} is not supported: Stoker {self.does} {known}. Install one of those."


TENSORFLOW = SupportedVersions("TensorFlow", (2, 17), (2, 21), "measures")
# Keras before 3.12.1 has known security holes in loading model files.
KERAS = SupportedVersions("Keras", (3, 12, 1), (3, 15), "runs on")


def parse(version: str) -> tuple[int, ...]:
    """Return the first three numbers of a version; empty if the text is not a version."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def spell(version: tuple[int, ...]) -> str:
    """Write `(3, 12, 1)` as 3.12.1."""
    return ".".join(map(str, version))
