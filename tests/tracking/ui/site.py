"""A store with a few runs, and `stoker ui` over it in a thread."""

from __future__ import annotations

import math
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from stoker.tracking.store import audit
from stoker.tracking.store.address import Address
from stoker.tracking.store.events import FindingsMeasured, LedgerMeasured, ValuesLogged
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.writer import StoreWriter
from stoker.tracking.ui.app import make_app
from tests.samples import sample_record
from tests.support import wait_until

TOKEN = "a-token-for-tests-only"
# Names that would run if any of them became markup.
HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


@dataclass
class Site:
    """A server that runs."""

    port: int
    store: Address

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def served(store: Address, *, write: bool = False) -> Iterator[Site]:
    """The page of a store, on a free port."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    ending = threading.Event()
    app = make_app(store, TOKEN, frozenset({f"127.0.0.1:{port}"}), ending, write=write)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    wait_until(lambda: server.started)
    try:
        yield Site(port, store)
    finally:
        ending.set()
        server.should_exit = True
        thread.join()


def fill(store: Address, directory: Path, writers: dict[Address, StoreWriter]) -> dict[str, str]:
    """A study of three runs inside one, with data, models, a ledger and hostile names; ids by name."""
    ids: dict[str, str] = {}
    (directory / "data.csv").write_text("1,2\n")
    with TrackedRun("study", {}, store=store, kind="track") as study:
        ids["study"] = study.id
        for number, rate in enumerate((0.001, 0.01, 0.1)):
            with TrackedRun(f"rate {rate}", {"rate": rate, "layers": 2}, store=store, kind="train") as run:
                ids[run.name] = run.id
                run.uses(directory / "data.csv")
                for step in range(300):
                    noise = math.sin(step * 1.7 + number) * 0.08
                    run.log(
                        step,
                        loss=math.exp(-step * rate * 2) + 0.2 + noise,
                        accuracy=1 - math.exp(-step * rate),
                    )
                    if step % 20 == 0:
                        run.log(step, val_loss=math.exp(-step * rate * 2) + 0.25)
                run.log(150, {"event/recovery": 3.0})
                model = directory / f"model-{number}"
                model.write_text(str(rate))
                run.artifact(model, kind="model")
    with TrackedRun("serving", {}, store=store, kind="deploy") as serving:
        ids["serving"] = serving.id
        serving.uses(directory / "model-2", kind="model")
        found = {"path": "new/", "conclusion": "same", "requests": 597, "changed": 0.0}
        serving.put(audit.note(audit.COMPARED, serving.id, {"model": "pets", **found}))
    _measured(store, ids)
    with TrackedRun(HOSTILE, {HOSTILE: HOSTILE}, store=store, kind="track") as hostile:
        ids["hostile"] = hostile.id
        hostile.log(0, {HOSTILE: 1.0, "nan": math.nan, "inf": math.inf})
        (directory / "odd").write_text("x")
        hostile.artifact(directory / "odd", name=HOSTILE, kind=HOSTILE)
    for writer in writers.values():
        writer.flush()
    return ids


def _measured(store: Address, ids: dict[str, str]) -> None:
    record = sample_record()
    with TrackedRun("train.py", {}, store=store, kind="run", run_id=record.id) as run:
        ids["measured"] = run.id
        findings = record.to_json()["findings"]
        run.put(LedgerMeasured(run.id, record.accounts), FindingsMeasured(run.id, findings))
        for step in range(20):
            at = {f"ledger/{name}": seconds * step / 20 for name, seconds in record.accounts.items()}
            run.put(ValuesLogged(run.id, step, 1.8e9 + step, {**at, "loss": 2.0 / (step + 1)}))
