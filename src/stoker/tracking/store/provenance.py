"""The origin of a model, to be exported with it, so that it can be traced without the store."""

from __future__ import annotations

from stoker.tracking.store.address import Address
from stoker.tracking.store.linking import USES
from stoker.tracking.store.plain_values import JsonObject
from stoker.tracking.store.queries import open_reader


def read_provenance(address: Address, run: str) -> JsonObject:
    """Read a run's code, its data by content hash, and the head of the audit, as plain values.

    Raises:
        RecordError: there is no such run.
        StoreError: the store cannot be read.
    """
    with open_reader(address) as reader:
        row = reader.run(reader.resolve(run))
        used = [link for link in reader.artifacts(row.id) if link.relation == USES]
        head = reader.audit_head()
    return {
        "store": str(address),
        "run": row.id,
        "name": row.name,
        "code": {"program": row.program, "commit": row.git_commit, "changed since": bool(row.git_diff)},
        "data": [{name: getattr(link, name) for name in ("name", "hash", "size", "path")} for link in used],
        "audit": None if head is None else {"seq": head[0], "hash": head[1]},
    }
