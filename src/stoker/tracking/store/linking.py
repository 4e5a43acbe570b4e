"""What a run uses or makes, as entries: the artifact with its link, and the audit's row that tells of it."""

from __future__ import annotations

import time

from stoker.tracking.store import audit, entries
from stoker.tracking.store.fingerprints import Fingerprint

USES, MAKES = "uses", "makes"


def linked(
    run: str, relation: str, found: Fingerprint, *, kind: str, name: str, path: str = ""
) -> list[entries.Entry]:
    """Link an artifact to a run; without a path it was only in memory."""
    columns = {"hash": found.hash, "kind": kind, "name": name, "size": found.size, "path": path}
    told = {"relation": relation, **columns}
    return [
        ["artifact", run, relation, {**columns, "time": time.time()}],
        audit.entry("artifact", run, told),
    ]
