"""The nouns every part of Stoker shares, as frozen dataclasses. Imports nothing else of ours.

`Record` is what a run leaves behind. Its JSON form is a contract that other programs read: fields are added,
never renamed. `to_json` and `from_json` derive from the dataclasses, so there is one list of fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1

# Where the host's time goes. Every second of a run is on exactly one of these.
ACCOUNTS = (
    "startup",
    "trace",
    "input",
    "transfer",
    "sync",
    "compute",
    "dispatch",
    "checkpoint",
    "python",
)


@dataclass(frozen=True)
class WhatIf:
    """The price of a finding: how much faster the run would have been without it."""

    speedup: float
    low: float
    high: float
    # Of the stepping time: what the finding itself holds, and by name what its repair may free elsewhere. A speed-up
    # is never above 1 / (1 - share - everything freed). None in a record of before they were kept.
    share: float | None = None
    frees: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Finding:
    """A kind of stall at a line of the user's program, with its evidence, its cost and its remedy."""

    kind: str
    code: str
    file: str
    line: int
    title: str
    remedy: str
    column: int | None = None
    function: str = ""
    source: str = ""
    evidence: str = "measured"
    count: int | None = None
    seconds: float | None = None
    wait_s: float | None = None
    copy_s: float | None = None
    # What the run would have been spared: a wait for useful work is in `seconds` but not lost.
    lost_s: float | None = None
    bytes: int | None = None
    what_if: WhatIf | None = None
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Device:
    """The accelerator the program ran on; `busy` is the share of the stepping time it had work, if known."""

    name: str = "CPU"
    kind: str = "CPU"
    count: int = 1
    busy: float | None = None
    # As the driver tells them, for devices that have one: share of time with any work, peak memory in bytes.
    utilisation: float | None = None
    memory_peak: int | None = None


@dataclass(frozen=True)
class Record:
    """One run: what ran, on what, its ledger and its findings."""

    id: str
    program: str
    argv: list[str]
    exit_code: int | None
    versions: dict[str, str]
    device: Device
    wall_s: float
    steps: int
    steps_per_s: float | None
    examples_per_s: float | None
    accounts: dict[str, float]
    findings: list[Finding]
    schema: int = SCHEMA
    started: str = ""
    # `running` until the program ended; a record found in that state is of a program that was killed.
    state: str = "finished"
    # What the reader must know to trust the figures: a probe that was disabled, TensorFlow never imported.
    notes: list[str] = field(default_factory=list)
    # Evidence beside the findings: traces, callbacks, pipelines, copies, where the Python time went.
    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    # Seconds of single steps in order of time, evenly thinned over the run to at most 512: the run's own noise.
    step_times: list[float] = field(default_factory=list)
    # A few windows of consecutive steps, span by span; None for a run that kept none. `docs/whatif.md` has the form.
    timeline: dict[str, Any] | None = None
    # All findings together, and the order in which to repair them: `all`, `order`, `assumptions`.
    what_if: dict[str, Any] | None = None
    # Memory over time, at most 256 points: seconds, bytes of the process, bytes on the device (None where unknown).
    memory: list[list[float | None]] = field(default_factory=list)
    # The lines around each finding: `file`, the number of the `first` line, `lines`.
    sources: list[dict[str, Any]] = field(default_factory=list)
    # What the run depended on beside its code: machine, build of TensorFlow, the variables that change either.
    environment: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The record as plain JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """Read a record back; fields this version does not know are ignored.

        Raises:
            KeyError, TypeError, ValueError: the data is not a record.
        """
        values = _known(cls, data)
        _check_accounts(values["accounts"])
        values["device"] = Device(**_known(Device, values["device"]))
        values["findings"] = [_finding(item) for item in values["findings"]]
        return cls(**values)


def speedup_without(finding: Finding, record: Record) -> float | None:
    """How much faster the run would have been without a finding: the one answer to it, everywhere.

    That is the finding's price, as replayed. A record without any prices (a killed run's, an older Stoker's) has only
    the seconds lost, of the whole run's time. None where nothing is known.
    """
    if finding.what_if is not None:
        return finding.what_if.speedup
    if record.what_if is not None or finding.lost_s is None or not 0 < finding.lost_s < record.wall_s:
        return None
    return record.wall_s / (record.wall_s - finding.lost_s)


def _finding(data: Mapping[str, Any]) -> Finding:
    values = _known(Finding, data)
    if values.get("what_if") is not None:
        values["what_if"] = WhatIf(**_known(WhatIf, values["what_if"]))
    return Finding(**values)


def _known(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    values = {f.name: data[f.name] for f in dataclasses.fields(cls) if f.name in data}
    for f in dataclasses.fields(cls):
        if f.name in values:
            _check(f.name, str(f.type), values[f.name])
    return values


# JSON's types behind the annotations; what is not named here (a nested dataclass) is read by its own fields.
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "list": (list,),
    "dict": (dict,),
}


def _check(name: str, annotation: str, value: Any) -> None:
    """A value of another type than its field's is damage, and better said here than where it is first used."""
    allowed = [
        _TYPES.get(part.strip().partition("[")[0]) for part in annotation.removesuffix("| None").split(" | ")
    ]
    if value is None and annotation.endswith("None"):
        return
    known = tuple(kind for kinds in allowed if kinds for kind in kinds)
    if known and (not isinstance(value, known) or isinstance(value, bool)):
        raise ValueError(f"{name} is {value!r:.40}")


def _check_accounts(accounts: Mapping[str, Any]) -> None:
    for name, seconds in accounts.items():
        _check(f"account {name}", "float", seconds)
