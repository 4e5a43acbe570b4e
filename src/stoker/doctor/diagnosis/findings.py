"""The findings of every stall's detector, with their source lines, costliest first."""

from __future__ import annotations

import linecache
from typing import cast

from stoker.doctor.attach.sites import SiteKey, shown_path
from stoker.doctor.probes.measurements import Books, Measurements
from stoker.doctor.stall import Stall, stalls
from stoker.doctor.stalls.shared.draft import Draft
from stoker.records import Detail, Finding
from stoker.redaction import redact_text

# Beyond this many findings, the list no longer helps.
_MAX_FINDINGS = 200


def findings(m: Measurements) -> list[Finding]:
    """Return what was found, costliest first."""
    found = [(stall, draft) for stall in stalls().values() for draft in stall.find(m)]
    explained = {draft.site for stall, draft in found if stall.explains_call}
    found = [(s, draft) for s, draft in found if not (s.is_part_of_call and draft.site in explained)]
    # Findings with a price in bytes come after those with a price in time.
    found.sort(key=lambda pair: (-(pair[1].lost_ns or 0), -(pair[1].saved_bytes or 0)))
    return [_finding(stall, draft, m) for stall, draft in found[:_MAX_FINDINGS]]


def _finding(stall: Stall, draft: Draft, m: Measurements) -> Finding:
    file, line, function = draft.site
    return stall.finding(
        file=shown_path(file),
        line=line,
        column=_column(draft.site, m),
        function=function,
        source=redact_text(linecache.getline(file, line).strip()),
        remedy=draft.remedy,
        count=draft.count,
        seconds=_seconds(draft.ns),
        wait_s=_seconds(draft.wait_ns),
        copy_s=_seconds(draft.copy_ns),
        lost_s=_seconds(draft.lost_ns),
        bytes=draft.bytes,
        bytes_saved=draft.saved_bytes,
        detail=cast(Detail, draft.detail),
    )


def _column(site: SiteKey, m: Measurements) -> int | None:
    seen = m[Books].columns.get(site)
    if seen:
        return seen
    text = linecache.getline(site[0], site[1])
    return len(text) - len(text.lstrip()) + 1 if text.strip() else None


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e9, 6)
