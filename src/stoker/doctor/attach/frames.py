"""Tracebacks without the frames that mean nothing to the program's author."""

from __future__ import annotations

from types import TracebackType

from stoker.doctor.attach.sites import USER, SiteKey, Sites


def drop_frames(trace: TracebackType | None, roots: str | tuple[str, ...]) -> TracebackType | None:
    """Return the traceback without the frames of files in these directories."""
    kept = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(roots):
            kept.append(trace)
        trace = trace.tb_next
    chain: TracebackType | None = None
    for entry in reversed(kept):
        chain = TracebackType(chain, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return chain


def innermost_line(trace: TracebackType | None, sites: Sites) -> SiteKey | None:
    """Return the innermost line of the user's code in a traceback."""
    found: SiteKey | None = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if sites.kind_of(code.co_filename) == USER:
            found = (code.co_filename, trace.tb_lineno, code.co_name)
        trace = trace.tb_next
    return found
