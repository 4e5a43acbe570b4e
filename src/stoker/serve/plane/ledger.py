"""The ledger of a server: every second of a request, from its last byte to its answer, belongs to one account.

    parse    the request's bytes are turned into rows
    queue    it waits while the engine answers others
    batch    its rows are joined with others, and its answers taken out again
    engine   the model runs, for the whole batch
    encode   the answers become bytes
    loop     it waits for its turn on the event loop, which parses and encodes others

`stoker serve --ledger` keeps it, shows it at the end and at /ledger, and says what to change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

from stoker.units import quantity

ACCOUNTS = ("parse", "queue", "batch", "engine", "encode", "loop")
_FULL_BATCH = 0.5


class LedgerJson(TypedDict):
    """The ledger of one model at /ledger; `seconds` are those of an average request, by account."""

    requests: int
    seconds: dict[str, float]
    rows_each_call: float
    engine: str
    advice: str


@dataclass
class Spent:
    """The seconds of one request, while it is answered."""

    parse: float = 0.0
    queue: float = 0.0
    batch: float = 0.0
    engine: float = 0.0
    encode: float = 0.0

    def loop(self, total: float) -> float:
        """Return the seconds that belong to no other account."""
        return max(0.0, total - self.parse - self.queue - self.batch - self.engine - self.encode)


@dataclass(frozen=True)
class Facts:
    """The facts that advice depends on, in addition to the accounts."""

    requests: int
    bytes_each: float
    rows_each_call: float
    most_rows: int
    workers: int
    cores: int
    engine: str
    engine_settled: bool  # no other engine can run the model, or the others were measured, too


def to_json(accounts: Mapping[str, float], facts: Facts) -> LedgerJson:
    """Return the ledger as JSON."""
    count = max(1, facts.requests)
    return {
        "requests": facts.requests,
        "seconds": {name: accounts.get(name, 0.0) / count for name in ACCOUNTS},
        "rows_each_call": facts.rows_each_call,
        "engine": facts.engine,
        "advice": advice(accounts, facts),
    }


def lines(model: str, accounts: Mapping[str, float], facts: Facts) -> list[str]:
    """Return the ledger for a terminal: a line for each account, the largest first, and what to change."""
    if not facts.requests:
        return [f"{model}: no requests, so there is no ledger"]
    total = sum(accounts.values()) or 1e-9
    shown = [f"{model}: {quantity(facts.requests, 'request')}, {1e6 * total / facts.requests:,.0f} us each"]
    for name in sorted(ACCOUNTS, key=lambda one: -accounts.get(one, 0.0)):
        seconds = accounts.get(name, 0.0)
        shown.append(
            f"  {name:<7} {1e6 * seconds / facts.requests:>10,.0f} us {100 * seconds / total:>5.1f} %"
        )
    return [*shown, f"  {advice(accounts, facts)}"]


def advice(accounts: Mapping[str, float], facts: Facts) -> str:
    """Return one line on what would help most."""
    if not facts.requests or not sum(accounts.values()):
        return "there were no requests yet"
    largest = max(ACCOUNTS, key=lambda name: accounts.get(name, 0.0))
    more = f"--workers {facts.cores}" if facts.workers < facts.cores else "another machine"
    if largest == "parse":
        return (
            f"parsing takes most of a request ({facts.bytes_each / 1024:.1f} KiB): send binary tensors to "
            "/v2/models/NAME/infer, or use gRPC"
        )
    if largest == "encode":
        return "encoding takes most of a request: ask for fewer outputs, or for binary ones at /v2/models/NAME/infer"
    if largest == "loop":
        return f"requests wait for each other's parsing and encoding: {more}, or several rows in a request"
    if largest == "batch":
        return "joining rows takes most of a request: send several rows in one request"
    if largest == "queue":
        full = facts.rows_each_call >= _FULL_BATCH * facts.most_rows
        wider = f"--batch {4 * facts.most_rows}, or " if full else ""
        return f"requests wait for the engine: {wider}{more}"
    if facts.engine_settled or facts.engine in ("litert", "onnx"):
        return f"the model itself takes most of a request, on {facts.engine}: a smaller one would help"
    return (
        f"the model itself takes most of a request, on {facts.engine}: export it with --engine litert or onnx, "
        "which may be quicker"
    )
