"""What the probes know at one moment: a collection of parts, one from each probe that has something to say.

    for site, tally in m[ReadsPart].by_site.items(): ...
    m[Books].wall_ns

A part is looked up by its type. It is declared by the probe that fills it, so a new probe changes nothing here. The
part of a probe that did not run is the one with every default: nothing was seen.
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
    """What one probe knows at one moment, as plain values. Every field of a subclass has a default: nothing seen.

    `stoker check` loads every stall, and a stall imports the parts it reads. So a part that stalls read lives in a
    module that imports neither TensorFlow nor the probe, nor `stoker.records` at its top.
    """

    def sites(self) -> Iterable[SiteKey]:
        """The lines of the user's program in this part."""
        return ()

    def tables(self, m: Measurements) -> dict[str, list[Any]]:
        """The tables that the part writes into the record, by name; `m` holds the other parts."""
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
    """The recorder's own part: nanoseconds by raw account, and what was noted."""

    start_ns: int = 0
    wall_ns: int = 0
    totals: dict[str, int] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    # Where on its line the call of a site stands.
    columns: dict[SiteKey, int] = field(default_factory=dict)
    # Time in pauses, which is estimated, and the standard error of that as a share.
    estimated_ns: int = 0
    estimate_error: float = 0.0
