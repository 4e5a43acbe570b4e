"""The tables of the page: retraces, copies and reads by line, functions, callbacks."""

from __future__ import annotations

from typing import Any

from stoker.records import Record
from stoker.units import duration, size

_MAX_ROWS = 60


def _where(row: dict[str, Any]) -> str:
    return f"{row['file']}:{row['line']}" if row.get("file") else ""


def traces(record: Record) -> list[dict[str, Any]]:
    """The user's functions that were traced again, the costliest first; those traced once say nothing."""
    rows = [
        row
        for row in record.tables.get("traces", [])
        if (row["traces"] > 1 or row["objects"] > 1) and "site-packages" not in str(row.get("file"))
    ]
    return [
        {
            "function": str(row["function"]),
            "where": _where(row),
            "traces": int(row["traces"]),
            "time": duration(float(row["seconds"])),
            "objects": int(row["objects"]),
            "changes": [[str(c["argument"]), str(c["old"]), str(c["new"])] for c in row.get("changes", [])],
        }
        for row in rows[:_MAX_ROWS]
    ]


def sites(record: Record, table: str) -> list[list[str]]:
    """A table of sites: line, function, times, bytes, seconds."""
    return [
        [
            _where(row),
            str(row.get("function", "")),
            f"{int(row['count']):,}",
            size(int(row["bytes"])),
            duration(float(row["seconds"])),
        ]
        for row in record.tables.get(table, [])[:_MAX_ROWS]
    ]


def callbacks(record: Record) -> list[list[str]]:
    """Callbacks by what they took."""
    return [
        [f"{row['callback']}.{row['hook']}", _where(row), f"{int(row['calls']):,}", duration(row["seconds"])]
        for row in record.tables.get("callbacks", [])[:_MAX_ROWS]
    ]


def functions(record: Record) -> list[list[str]]:
    """Compiled functions: calls, seconds in the graph and in all."""
    return [
        [
            str(row["function"]) + (" (XLA)" if row.get("jit_compile") else ""),
            _where(row),
            f"{int(row['calls']):,}",
            duration(float(row["graph_s"])),
            duration(float(row["seconds"])),
        ]
        for row in record.tables.get("functions", [])[:_MAX_ROWS]
    ]
