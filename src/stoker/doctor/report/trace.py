"""A trace for Perfetto and chrome://tracing: Stoker's spans of the recorded windows, alongside TensorFlow's own.

Times are in microseconds since the start of the run. The format is the JSON object of the Trace Event Format: complete
events (`X`), counters (`C`) and names (`M`), in order of time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from stoker.doctor.report import output
from stoker.errors import UsageError
from stoker.records import ProfilerWindow, Record, Timeline

_OURS, _TENSORFLOW = 1, 2
_STEPS_LANE = 1

Event = dict[str, Any]


def trace(record: Record, windows: list[ProfilerWindow]) -> dict[str, Any]:
    """Return the trace of a run; `windows` holds the profiler's events that were saved beside the record."""
    timelines = [record.timeline, *(window.timeline for window in windows)]
    names, events = _lanes([timeline for timeline in timelines if timeline is not None])
    their_names, their_events = _tensorflow(windows)
    events += [*their_events, *_memory(record)]
    # If two events start together, the longer one contains the other and comes first.
    events.sort(key=lambda event: (event["ts"], -event.get("dur", 0.0)))
    return {
        "traceEvents": [*_process_names(record), *names, *their_names, *events],
        "displayTimeUnit": "ms",
        "otherData": {"run": record.id, "program": record.program, "versions": record.versions},
    }


def write(record: Record, windows: list[ProfilerWindow], path: str) -> None:
    """Write a trace.

    Raises:
        UsageError: the trace would be empty, or the file cannot be written.
    """
    made = trace(record, windows)
    if not any(event["ph"] == "X" for event in made["traceEvents"]):
        raise UsageError(
            f"run {record.id} has no recorded windows, so there is nothing to trace: "
            "it was too short, or it was recorded by an older Stoker; run the program again"
        )
    output.write(path, json.dumps(made, separators=(",", ":")))


def _process_names(record: Record) -> Iterator[Event]:
    for pid, name in ((_OURS, f"Stoker: {record.program}"), (_TENSORFLOW, "TensorFlow's profiler")):
        yield _meta("process_name", pid, 0, {"name": name})
        yield _meta("process_sort_index", pid, 0, {"sort_index": pid})


def _lanes(timelines: list[Timeline]) -> tuple[list[Event], list[Event]]:
    """Return Stoker's lanes: the steps, then host, input and device, with their names in the timelines."""
    threads = {"steps": _STEPS_LANE}
    events: list[Event] = []
    for timeline in timelines:
        for window in timeline.windows:
            events += [_span(_STEPS_LANE, "step", "step", start, end) for start, end in window.steps]
            for lane in window.lanes:
                thread = threads.setdefault(lane.name, len(threads) + 1)
                for span in lane.spans:
                    event = _span(thread, span.name or span.account, span.account, span.start, span.end)
                    site = timeline.site_of(span)
                    if site is not None:
                        event["args"] = {"line": f"{site.file}:{site.line}"}
                    events.append(event)
    names = [_meta("thread_name", _OURS, tid, {"name": name}) for name, tid in threads.items()]
    return names if events else [], events


def _tensorflow(windows: list[ProfilerWindow]) -> tuple[list[Event], list[Event]]:
    threads: dict[str, int] = {}
    events: list[Event] = []
    for window in windows:
        base = window.start_s * 1e6
        for thread, found in window.threads.items():
            tid = threads.setdefault(thread, len(threads) + 1)
            for start, length, name in found:
                events.append(
                    {
                        "ph": "X",
                        "pid": _TENSORFLOW,
                        "tid": tid,
                        "name": name,
                        "cat": "tensorflow",
                        "ts": round(base + start, 3),
                        "dur": round(max(0.0, length), 3),
                    }
                )
    return [_meta("thread_name", _TENSORFLOW, tid, {"name": name}) for name, tid in threads.items()], events


def _memory(record: Record) -> Iterator[Event]:
    for at, host, device in record.memory:
        values = {"process": host, "device": device}
        known = {name: value for name, value in values.items() if value is not None}
        if at is not None and known:
            yield {
                "ph": "C",
                "pid": _OURS,
                "tid": 0,
                "name": "memory",
                "ts": round(at * 1e6, 3),
                "args": known,
            }


def _span(tid: int, name: str, category: str, start: float, end: float) -> Event:
    return {
        "ph": "X",
        "pid": _OURS,
        "tid": tid,
        "name": name,
        "cat": category,
        "ts": round(start * 1e6, 3),
        "dur": round(max(0.0, end - start) * 1e6, 3),
    }


def _meta(kind: str, pid: int, tid: int, args: dict[str, Any]) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": kind, "ts": 0, "args": args}
