"""The counts of every test: the table, and the comparison with the last passing run."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.doctor.guard.limits import COPIES, RETRACES, SYNCS
from stoker.doctor.guard.report import Report, amount
from stoker.doctor.pytest_plugin import child
from stoker.units import size

_CACHE = "stoker/counts"
_COLUMNS = ("syncs", "copies", "copied", "retraces", "eager ops")
_NAMES = ("syncs", "copies", "copied_bytes", "retraces", "eager_ops")


class Counts:
    """The rows of one session, by test."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._rows: dict[str, dict[str, int]] = {}
        self._before: dict[str, dict[str, int]] | None = None

    def row(self, report: Report) -> dict[str, int]:
        """Return a guard's report as plain numbers."""
        return {name: int(getattr(report, name)) for name in _NAMES}

    def take(self, report: pytest.TestReport) -> None:
        """Keep the row that came with a test's report."""
        row = getattr(report, "stoker", None)
        if row is not None:
            self._rows[report.nodeid] = row

    def increases(self, nodeid: str, report: Report) -> list[str]:
        """Return the counts above those of the last passing run, with their lines."""
        before = self._last().get(nodeid)
        if before is None:
            return []
        told = []
        for kind in (SYNCS, COPIES, RETRACES):
            now = report.counts[kind]
            if now > before[kind]:
                head = f"{amount(kind, now)}, {before[kind]:,} in the last passing run"
                told.append("\n".join([head, *(line.text() for line in report.ordered(kind))]))
        if report.copied_bytes > before["copied_bytes"] and report.copies <= before["copies"]:
            sizes = (
                f"{size(report.copied_bytes)} copied, {size(before['copied_bytes'])} in the last passing run"
            )
            told.append("\n".join([sizes, *(line.text() for line in report.ordered(COPIES))]))
        return told

    def save(self) -> None:
        """Save the counts of this passing run, to compare the next run with. Tests that did not run keep theirs."""
        cache = self._config.cache
        if cache is not None and not child.is_child() and not hasattr(self._config, "workerinput"):
            cache.set(_CACHE, {**self._last(), **self._rows})

    def _last(self) -> dict[str, dict[str, int]]:
        if self._before is None:
            cache = self._config.cache
            self._before = dict(cache.get(_CACHE, {})) if cache is not None else {}
        return self._before

    def show(self, terminal: Any) -> None:
        """Show the table, most syncs first."""
        if not self._rows:
            return
        terminal.section("stoker")
        rows = sorted(self._rows.items(), key=lambda item: [-item[1][name] for name in _NAMES])
        texts = [(nodeid, [_text(name, row[name]) for name in _NAMES]) for nodeid, row in rows]
        terminal.write_line("".join(f"{column:>11}" for column in _COLUMNS) + "  test")
        for nodeid, values in texts:
            terminal.write_line("".join(f"{value:>11}" for value in values) + f"  {nodeid}")


def _text(name: str, value: int) -> str:
    return size(value) if name == "copied_bytes" else f"{value:,}"
