# mypy: ignore-errors
"""Made the files beside this one, with the store as it was before its events had types (Stoker 0.2, tables 0001).

    LOGNAME=tester python make.py DIRECTORY [postgresql://USER@HOST/DATABASE]

It runs with that version only, and stays here to say what is in the files: `stoker.db` and `head.json`, `spool.jsonl`
with an event of every kind, and, if a database is given, what `pg_dump --inserts` then writes to `postgresql.sql`.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from stoker.tracking.store import address, audit, deleting, spool, surroundings, writer
from stoker.tracking.store.applying import Batch
from stoker.tracking.store.tracking import Run

VALUES = [0.5, math.nan, math.inf, -math.inf, -0.0, 0.1 + 0.2]
FINDING = {
    "kind": "sync-in-loop",
    "code": "STK101",
    "file": "train.py",
    "line": 42,
    "seconds": 5.0,
    "lost_s": 4.5,
    "what_if": {"speedup": 3.1},
    "source": "print(loss.numpy())",
}


def fill(store: address.Address) -> None:
    """Three runs: one that ended, one that failed inside it, one that was deleted."""
    with Run("old one", {"rate": 0.1, "layers": [1, 2]}, store=store, kind="track", run_id="old-1") as run:
        for step, value in enumerate(VALUES):
            run.log(step, {"loss": value, "odd näme": float(step)})
        run.put(["ledger", run.id, {"sync": 1.5, "input": 0.5}], ["findings", run.id, [FINDING]])
        run.uses_data([1.0, 2.0, 3.0], name="numbers")
        run.flush()
        with Run("old two", {}, store=store, kind="train", run_id="old-2") as inner:
            inner.ended_with(ValueError("enough"), steps=3, steps_per_s=1.5)
        with Run("old three", {}, store=store, kind="track", run_id="old-3"):
            pass
    run.flush()
    deleting.delete(store, "old-3")
    for one in writer._writers.values():
        one.close()


def spooled() -> list[list[list[Any]]]:
    """Batches with every kind of entry."""
    columns = {
        "name": "spooled", "kind": "track", "program": "train.py", "arguments": ["--fast"], "parameters": {"a": 1},
        "versions": {"python": "3.11"}, "machine": {"cores": 2}, "state": "running", "started": 100.0, "seen": 100.0,
    }  # fmt: skip
    artifact = {"hash": "sha256:ab", "kind": "data", "name": "table", "size": 3, "path": "", "time": 101.0}
    told = {name: artifact[name] for name in ("hash", "kind", "name", "size", "path")}
    by = {"by": "tester"}
    return [
        [
            ["run", "spooled-1", columns],
            ["audit", 100.0, "run started", "spooled-1", {"name": "spooled", **by}],
            ["values", "spooled-1", 0, 100.5, {"loss": 1.0, "accuracy": math.nan}],
            ["values", "spooled-1", 1, 101, {"loss": math.inf}],
            ["ledger", "spooled-1", {"sync": 2.0, "input": 1}],
            ["findings", "spooled-1", [FINDING]],
            ["artifact", "spooled-1", "uses", artifact],
            ["audit", 101.0, "artifact", "spooled-1", {"relation": "uses", **told, **by}],
            ["seen", ["spooled-1"], 102.0],
        ],
        [
            ["run", "spooled-2", {**columns, "name": "gone"}],
            ["audit", 102.0, "run started", "spooled-2", by],
            ["values", "spooled-2", 0, 102.0, {"loss": 1.0}],
            ["delete", "spooled-2"],
            ["audit", 103.0, "run deleted", "spooled-2", by],
            ["audit", 104.0, "head published", None, by],
            ["change", "spooled-1", {"state": "finished", "error": None, "ended": 105.0, "steps": 2}],
            ["audit", 105.0, "run ended", "spooled-1", {"state": "finished", **by}],
        ],
    ]


def main(directory: Path, *urls: str) -> None:
    surroundings.machine = lambda: {"host": "elsewhere", "cores": 2}  # type: ignore[assignment]
    surroundings.program = lambda: ("train.py", ["--epochs", "3"])  # type: ignore[assignment]
    store = address.parse(f"sqlite:///{directory / 'stoker.db'}")
    fill(store)
    audit.head_path(store).rename(directory / "head.json")
    left = spool.Spool(store, "1-old")
    for number, entries in enumerate(spooled(), 1):
        left.append(Batch("1-old", number, entries))
    (file,) = left.files
    path = file.path
    left.let_go()
    path.rename(directory / "spool.jsonl")
    path.parent.rmdir()
    for url in urls:
        fill(address.parse(url))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), *sys.argv[2:])
