"""All detectors in a row, and their drafts made into findings: source line, text, order by price."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator
from typing import Any, cast

from stoker.doctor.attach.sites import SiteKey, shown_path
from stoker.doctor.diagnosis import checkpoints, collectives, copies, eager, graphs, inputs, keras, syncs
from stoker.doctor.diagnosis.draft import Draft
from stoker.doctor.probes.session import Measurements
from stoker.doctor.stall import stalls
from stoker.records import Detail, Finding
from stoker.redaction import redact_text

DETECTORS: tuple[Callable[[Measurements], Iterator[Draft]], ...] = (
    syncs.find,
    copies.find,
    eager.find,
    graphs.find,
    inputs.find,
    keras.find,
    checkpoints.find,
    collectives.find,
)

# Beyond this many the list no longer helps.
_MAX_FINDINGS = 200


def findings(m: Measurements) -> list[Finding]:
    """What was found, costliest first."""
    drafts = _without_echoes([draft for detector in DETECTORS for draft in detector(m)])
    drafts.sort(key=lambda draft: -draft.lost_ns)
    return [_finding(draft, m) for draft in drafts[:_MAX_FINDINGS]]


def _without_echoes(drafts: list[Draft]) -> list[Draft]:
    """Drop what another finding already explains, such as the cost of `predict` in a loop."""
    explained = {draft.site for draft in drafts if draft.kind == "predict-in-loop"}

    def echo(draft: Draft) -> bool:
        kinds = ("launch-bound", "eager-train-step", "numpy-feed-in-loop")
        return draft.kind in kinds and draft.site in explained

    return [draft for draft in drafts if not echo(draft)]


def _finding(draft: Draft, m: Measurements) -> Finding:
    file, line, function = draft.site
    return stalls()[draft.kind].finding(
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
        detail=cast(Detail, draft.detail),
    )


def _column(site: SiteKey, m: Measurements) -> int | None:
    seen = m.columns.get(site)
    if seen:
        return seen
    text = linecache.getline(site[0], site[1])
    return len(text) - len(text.lstrip()) + 1 if text.strip() else None


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e9, 6)


def site_row(site: SiteKey | None) -> dict[str, Any]:
    """A site as columns of a table."""
    return {"file": shown_path(site[0]), "line": site[1], "function": site[2]} if site else {}
