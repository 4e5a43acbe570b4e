"""The base of all parts of a record: they keep fields that a later Stoker added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# The field that keeps unknown fields.
EXTRA = "extra"
# In a field's metadata, this says that the field is left out if it has its default.
ABSENT = "absent by default"


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a record. `extra` holds fields that were read but are unknown; they are written again."""

    extra: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


def absent(default: Any = None) -> Any:
    """Declare a field that is left out of the JSON if it has its default."""
    return field(default=default, metadata={ABSENT: True})
