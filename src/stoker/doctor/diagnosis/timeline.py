"""The windows of spans in the record's form: seconds since the start, numbered sites, one lane per resource."""

from __future__ import annotations

from stoker.doctor.attach.sites import SiteKey, shown_path
from stoker.doctor.probes.measurements import Books, Measurements
from stoker.doctor.probes.parts.device import DevicePart
from stoker.doctor.probes.parts.steps import StepsPart
from stoker.doctor.probes.pipelines import Pipeline
from stoker.doctor.probes.recorder import ACCOUNT_NAMES, EAGER, GRAPH, INPUT, SYNC, TRANSFER
from stoker.doctor.probes.spans import Span, Window
from stoker.doctor.stalls.shared.draft import find_commonest_site
from stoker.records import Lane, SpanRow, StepRow, Timeline, TimelineSite, TimelineWindow


def timeline_of(m: Measurements, spans: list[Window]) -> Timeline | None:
    """Return the windows that hold a whole step; None if there are none."""
    sites = _Sites()
    windows = [_window(m, window, sites) for window in spans]
    kept = [window for window in windows if window.steps]
    return Timeline(sites=sites.rows, windows=kept) if kept else None


class _Sites:
    """Numbers the sites."""

    def __init__(self) -> None:
        self.rows: list[TimelineSite] = []
        self._numbers: dict[SiteKey, int] = {}

    def number(self, site: SiteKey | None) -> int:
        if site is None:
            return -1
        found = self._numbers.get(site)
        if found is None:
            found = self._numbers[site] = len(self.rows)
            self.rows.append(TimelineSite(shown_path(site[0]), site[1], site[2]))
        return found


def _window(m: Measurements, window: Window, sites: _Sites) -> TimelineWindow:
    origin, sources = m[Books].start_ns, m[StepsPart].phase.sources
    ends = [end for end, _, _, source in window.ends if source in sources]
    if window.full and window.spans:
        # The last step lacks a span that did not fit.
        ends = [end for end in ends if end <= window.spans[-1].end]
    marks = [(start, end) for start, end in zip([window.start, *ends], ends, strict=False) if end > start]
    last = marks[-1][1] if marks else window.start
    spans = [span for span in window.spans if span.end <= last]
    host = [_row(span, sites, origin) for span in spans]
    lanes = [Lane("host", host)]
    waits = [row for row, span in zip(host, spans, strict=True) if span.account == INPUT]
    copies = [row for row, span in zip(host, spans, strict=True) if span.account == TRANSFER]
    device = _device(spans, sites, origin) if m[DevicePart].runs_beside_host else []
    for name, rows in (("input", waits), ("copy", copies), ("device", device)):
        if rows:
            lanes.append(Lane(name, rows))
    return TimelineWindow(
        start_s=_seconds(window.start - origin),
        end_s=_seconds(last - origin),
        cpu_s=round(window.cpu_ns / 1e9, 6),
        delayed_s=round(window.delay_ns / 1e9, 6),
        cpu_wall_s=_seconds(window.end - window.start) if window.end else 0.0,
        steps=[StepRow(_seconds(start - origin), _seconds(end - origin)) for start, end in marks],
        lanes=lanes,
    )


def _device(spans: list[Span], sites: _Sites, origin: int) -> list[SpanRow]:
    """Return when a device alongside the host was busy: from the first launch to the read that waited for it."""
    rows = []
    first: Span | None = None
    for span in spans:
        if span.account in (GRAPH, EAGER) and first is None:
            first = span
        elif span.account == SYNC and span.wait:
            if first is not None:
                busy = Span(first.start, span.start + span.wait, GRAPH, first.site, first.name)
                rows.append(_row(busy, sites, origin)._replace(account="compute"))
            first = None
    return rows


def _row(span: Span, sites: _Sites, origin: int) -> SpanRow:
    return SpanRow(
        _seconds(span.start - origin),
        _seconds(span.end - origin),
        ACCOUNT_NAMES[span.account],
        sites.number(_site(span.site)),
        span.name,
        round(span.wait / 1e9, 7),
    )


def _site(owner: object) -> SiteKey | None:
    """Return the user's line behind a span: the line that calls the function or reads the pipeline."""
    # Imported here, as only the program's process has such spans, and only that process has loaded these probes.
    from stoker.doctor.probes.graph_calls import CalledFunction
    from stoker.doctor.probes.retrace import TracedFunction

    if isinstance(owner, (CalledFunction, Pipeline)):
        return find_commonest_site(owner.sites)
    if isinstance(owner, TracedFunction):
        return owner.definition
    return owner if isinstance(owner, tuple) else None


def _seconds(ns: int) -> float:
    return round(ns / 1e9, 7)
