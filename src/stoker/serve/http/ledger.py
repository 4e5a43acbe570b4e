"""The ledger of a server: every second of a request, from its last byte to its answer, is on one account.

    parse    the request's bytes become rows
    queue    it waits for the engine, which answers others
    batch    its rows are joined with others', handed over, and its answers taken out again
    engine   the model runs, for all of the batch
    encode   the answers become bytes
    loop     it waits for its turn on the event loop: others are parsed and encoded

`stoker serve --ledger` keeps it, tells it at the end and at /ledger, and says what to change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ACCOUNTS = ("parse", "queue", "batch", "engine", "encode", "loop")
_FULL_BATCH = 0.5


@dataclass
class Spent:
    """One request's seconds, while it is answered."""

    parse: float = 0.0
    queue: float = 0.0
    batch: float = 0.0
    engine: float = 0.0
    encode: float = 0.0

    def loop(self, total: float) -> float:
        """What is left of its time."""
        return max(0.0, total - self.parse - self.queue - self.batch - self.engine - self.encode)


@dataclass(frozen=True)
class Facts:
    """What an advice depends on, beside the accounts."""

    requests: int
    bytes_each: float
    rows_each_call: float
    most_rows: int
    workers: int
    cores: int
    engine: str
    engine_settled: bool  # no other engine could take it, or they were measured, too


def described(accounts: Mapping[str, float], facts: Facts) -> dict[str, Any]:
    """As JSON: seconds of an average request by account, and what to change."""
    count = max(1, facts.requests)
    return {
        "requests": facts.requests,
        "seconds": {name: accounts.get(name, 0.0) / count for name in ACCOUNTS},
        "rows_each_call": facts.rows_each_call,
        "engine": facts.engine,
        "advice": advice(accounts, facts),
    }


def lines(model: str, accounts: Mapping[str, float], facts: Facts) -> list[str]:
    """For a terminal: a line for each account, the largest first, and what to change."""
    if not facts.requests:
        return [f"{model}: no requests, so there is no ledger"]
    total = sum(accounts.values()) or 1e-9
    shown = [f"{model}: {facts.requests:,} requests, {1e6 * total / facts.requests:,.0f} us each"]
    for name in sorted(ACCOUNTS, key=lambda one: -accounts.get(one, 0.0)):
        seconds = accounts.get(name, 0.0)
        shown.append(
            f"  {name:<7} {1e6 * seconds / facts.requests:>10,.0f} us {100 * seconds / total:>5.1f} %"
        )
    return [*shown, f"  {advice(accounts, facts)}"]


def advice(accounts: Mapping[str, float], facts: Facts) -> str:
    """What would help most, in one line."""
    if not facts.requests or not sum(accounts.values()):
        return "nothing was asked yet"
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
