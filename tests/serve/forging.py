"""Bundles with other contents, hashed and sealed again: what someone who changes one on purpose would do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stoker.serve import bundle
from stoker.serve.safety.opening import seal, write_description


def reseal(place: Path, change: Callable[[dict[str, Any]], Any] | None = None) -> Path:
    """Change the description, then bring every hash in it up to date."""
    description = json.loads((place / bundle.DESCRIPTION).read_text(encoding="utf-8"))
    if change is not None:
        change(description)
    description["files"] = bundle.hashes(place)
    write_description(place, seal(description))
    return place
