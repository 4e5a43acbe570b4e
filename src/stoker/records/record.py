"""The record of a run: what ran, on what, its ledger, its findings, and the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stoker.records.finding import Finding, Repairs
from stoker.records.memory import MemoryBook
from stoker.records.reading import Damaged, read
from stoker.records.section import ABSENT, Section
from stoker.records.tables import Tables
from stoker.records.timeline import Timeline
from stoker.records.writing import plain

SCHEMA = 1

# Where the host's time goes. Every second of a run belongs to exactly one of these.
ACCOUNTS = (
    "startup",
    "trace",
    "input",
    "transfer",
    "sync",
    "compute",
    "dispatch",
    "communication",
    "checkpoint",
    "teardown",
    "python",
)


@dataclass(frozen=True)
class Device(Section):
    """The accelerator on which the program ran; `busy` is the share of the stepping time in which it had work, if
    known.
    """

    name: str = "CPU"
    kind: str = "CPU"
    count: int = 1
    busy: float | None = None
    # From the device's driver, if it has one: the share of time with any work, and the peak memory in bytes.
    utilisation: float | None = None
    memory_peak: int | None = None


class MemoryRow(NamedTuple):
    """Memory at a moment: seconds since the start, bytes of the process, bytes on the device; None where unknown."""

    at_s: float | None
    process: float | None
    device: float | None


@dataclass(frozen=True)
class Excerpt(Section):
    """Lines of the user's source around a finding, from the line number `first`."""

    file: str
    first: int
    lines: list[str]


@dataclass(frozen=True)
class Record(Section):
    """One run."""

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
    # `running` until the program ends. If a record stays in that state, its program was killed.
    state: str = "finished"
    # What the reader must know to trust the figures: a probe was disabled, TensorFlow was never imported.
    notes: list[str] = field(default_factory=list)
    tables: Tables = field(default_factory=Tables)
    # The seconds of single steps in order of time, at most 512, spread evenly over the run. They show its noise.
    step_times: list[float] = field(default_factory=list)
    # None for a run that kept no windows.
    timeline: Timeline | None = None
    what_if: Repairs | None = None
    # Memory over time, at most 256 points.
    memory: list[MemoryRow] = field(default_factory=list)
    # Who owned the device's memory at its peak; absent for a run without a device, or without a window.
    memory_book: MemoryBook | None = field(default=None, metadata={ABSENT: True})
    sources: list[Excerpt] = field(default_factory=list)
    # The machine, the build of TensorFlow, and the variables that change what they do.
    environment: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the record as values that `json.dumps` takes."""
        made: dict[str, Any] = plain(self)
        return made

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Record:
        """Read a record back.

        Raises:
            Damaged: the data is not a record.
        """
        record = read(cls, data)
        if record.timeline is not None:
            try:
                record.timeline.check()
            except Damaged as error:
                raise error.inside("timeline") from None
        return record


def speedup_without(finding: Finding, record: Record) -> float | None:
    """Return how much faster the run would have been without a finding. All code that shows this figure calls this.

    It is the finding's price from the replay. For a record without prices (of a killed run, or from an older Stoker),
    it follows from the seconds lost out of the run's time. None if nothing is known.
    """
    if finding.what_if is not None:
        return finding.what_if.speedup
    if record.what_if is not None or finding.lost_s is None or not 0 < finding.lost_s < record.wall_s:
        return None
    return record.wall_s / (record.wall_s - finding.lost_s)
