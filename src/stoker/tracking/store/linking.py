"""Links between runs and artifacts, as events: the link itself, and its row in the audit."""

from __future__ import annotations

import time

from stoker.tracking.store import audit
from stoker.tracking.store.events import ArtifactColumns, ArtifactLinked, Event
from stoker.tracking.store.fingerprints import Fingerprint

USES, MAKES = "uses", "makes"


def link_artifact(
    run: str, relation: str, found: Fingerprint, *, kind: str, name: str, path: str = ""
) -> list[Event]:
    """Return the events that link an artifact to a run; an artifact without a path exists only in memory."""
    details = {"hash": found.hash, "kind": kind, "name": name, "size": found.size, "path": path}
    artifact = ArtifactColumns(
        hash=found.hash, kind=kind, name=name, size=found.size, path=path, time=time.time()
    )
    return [
        ArtifactLinked(run, relation, artifact),
        audit.note(audit.ARTIFACT, run, {"relation": relation, **details}),
    ]
