"""Where something comes from: what an exported model carries with it, so that it can be traced without the store."""

from __future__ import annotations

from typing import Any

from stoker.tracking.store.address import Address
from stoker.tracking.store.queries import reading


def provenance(address: Address, run: str) -> dict[str, Any]:
    """The run, the code, the data by content hash, and the end of the audit's chain, as plain values.

    Raises:
        RecordError: no such run.
        Trouble: the store cannot be read.
    """
    with reading(address) as reader:
        run = reader.resolve(run)
        (row,) = reader.runs(run)
        used = [one for one in reader.artifacts(run) if one["relation"] == "uses"]
        changed = bool(reader.column(run, "git_diff"))
        head = reader.audit_head()
    return {
        "store": str(address),
        "run": run,
        "name": row.columns["name"],
        "code": {
            "program": row.columns["program"],
            "commit": row.columns["git_commit"],
            "changed since": changed,
        },
        "data": [{name: one[name] for name in ("name", "hash", "size", "path")} for one in used],
        "audit": None if head is None else {"seq": head[0], "hash": head[1]},
    }
