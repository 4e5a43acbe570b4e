"""Counts and times by the user's line: tensors read, arrays copied, checkpoints saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from stoker.doctor.probes.measurements import Measurements, ProbePart

if TYPE_CHECKING:
    from stoker.doctor.attach.sites import SiteKey
    from stoker.doctor.probes.recorder import Tally
    from stoker.records import TallyRow

MAX_ROWS = 100


@dataclass(frozen=True)
class TallyPart(ProbePart):
    """The tallies of one probe. A subclass names the table of the record that holds them."""

    table: ClassVar[str]
    by_site: Mapping[SiteKey, Tally] = field(default_factory=dict)

    def sites(self) -> Iterable[SiteKey]:
        return self.by_site

    def tables(self, m: Measurements) -> dict[str, list[TallyRow]]:
        from stoker.doctor.attach.sites import site_columns
        from stoker.records import TallyRow

        costliest = sorted(self.by_site.items(), key=lambda item: -item[1].ns)[:MAX_ROWS]
        rows = [
            TallyRow(
                **site_columns(site), count=t.count, seconds=t.ns / 1e9, wait_s=t.wait_ns / 1e9, bytes=t.bytes
            )
            for site, t in costliest
        ]
        return {self.table: rows}


class ReadsPart(TallyPart):
    """Tensors whose values the host read."""

    table = "syncs"


class CopiesPart(TallyPart):
    """Host data that became tensors."""

    table = "copies"


class CheckpointsPart(TallyPart):
    """Models saved and loaded."""

    table = "checkpoints"
