"""What the probes know at one moment: a collection of parts, one from each probe that has something to report.

    for site, tally in m[ReadsPart].by_site.items(): ...
    m[Books].wall_ns

A part is looked up by its type. The probe that fills a part also declares it, so a new probe changes nothing here. The
part of a probe that did not run has all defaults, which mean that nothing was seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey

P = TypeVar("P", bound="ProbePart")


@dataclass(frozen=True)
class ProbePart:
    """What one probe knows at one moment, as plain values. The default of every field means that nothing was seen.

    `stoker check` loads every stall, and a stall imports the parts it reads. So a part that stalls read lives in a
    module that imports neither TensorFlow nor the probe, nor `stoker.records` at its top.
    """

    def sites(self) -> Iterable[SiteKey]:
        """Return the lines of the user's program in this part."""
        return ()

    def tables(self, m: Measurements) -> dict[str, list[Any]]:
        """Return the tables that the part writes into the record, by name; `m` holds the other parts."""
        return {}


class Measurements:
    """The parts of all probes, by type."""

    def __init__(self, parts: Iterable[ProbePart]) -> None:
        self._parts = {type(part): part for part in parts}

    def __getitem__(self, kind: type[P]) -> P:
        part = self._parts.get(kind)
        return part if isinstance(part, kind) else kind()

    def __iter__(self) -> Iterator[ProbePart]:
        return iter(self._parts.values())


@dataclass(frozen=True)
class Books(ProbePart):
    """The recorder's own part: nanoseconds by raw account, and the notes."""

    start_ns: int = 0
    wall_ns: int = 0
    totals: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    # The column of each site's call on its line.
    columns: dict[SiteKey, int] = field(default_factory=dict)
    # The estimated time in pauses, and the standard error of the estimate as a share.
    estimated_ns: int = 0
    estimate_error: float = 0.0
