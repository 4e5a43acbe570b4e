"""The tables of the page: retraces, copies and reads by line, functions, callbacks."""

from __future__ import annotations

from typing import Any

from stoker.records import Record, TallyRow
from stoker.units import duration, size

_MAX_ROWS = 60


def traces(record: Record) -> list[dict[str, Any]]:
    """Return the user's functions that were traced again, costliest first."""
    rows = [
        row
        for row in record.tables.traces
        if (row.traces > 1 or row.objects > 1) and "site-packages" not in (row.file or "")
    ]
    return [
        {
            "function": row.function or "",
            "where": row.where,
            "traces": row.traces,
            "time": duration(row.seconds),
            "objects": row.objects,
            "changes": [[c.argument, c.old, c.new] for c in row.changes],
        }
        for row in rows[:_MAX_ROWS]
    ]


def sites(rows: list[TallyRow]) -> list[list[str]]:
    """Return a table of sites: line, function, times, bytes, seconds."""
    return [
        [row.where, row.function or "", f"{row.count:,}", size(row.bytes), duration(row.seconds)]
        for row in rows[:_MAX_ROWS]
    ]


def callbacks(record: Record) -> list[list[str]]:
    """Return a table of callbacks, costliest first."""
    return [
        [f"{row.callback}.{row.hook}", row.where, f"{row.calls:,}", duration(row.seconds)]
        for row in record.tables.callbacks[:_MAX_ROWS]
    ]


def functions(record: Record) -> list[list[str]]:
    """Return a table of compiled functions: calls, seconds in the graph, seconds in all."""
    return [
        [
            (row.function or "") + (" (XLA)" if row.jit_compile else ""),
            row.where,
            f"{row.calls:,}",
            duration(row.graph_s),
            duration(row.seconds),
        ]
        for row in record.tables.functions[:_MAX_ROWS]
    ]
