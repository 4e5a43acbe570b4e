"""What all parts of a record have in common: they keep fields that a later Stoker added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# The field that keeps unknown fields.
EXTRA = "extra"
# In the metadata of a field: the field is left out where it has its default.
ABSENT = "absent by default"


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a record. `extra` holds fields that were read but are not known; they are written again."""

    extra: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


def absent(default: Any = None) -> Any:
    """A field that is left out of the JSON if it has its default."""
    return field(default=default, metadata={ABSENT: True})
