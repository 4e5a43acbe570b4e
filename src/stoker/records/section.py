"""What all parts of a record have in common: they keep the fields that a later Stoker added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# The field that keeps what is not known.
EXTRA = "extra"
# In the metadata of a field: it is not written where it has its default.
ABSENT = "absent by default"


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a record. What is in `extra` was read, is not known, and is written again."""

    extra: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


def absent(default: Any = None) -> Any:
    """A field that is None (or this) by default, and then not written."""
    return field(default=default, metadata={ABSENT: True})
