"""Runs of the store on the terminal: the list, one run, two side by side, the audit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from rich.table import Table
from rich.text import Text

from stoker.doctor.report.terminal import Terminal
from stoker.doctor.report.words import rate
from stoker.tracking.store.differing import Difference, Differences
from stoker.tracking.store.table import find_value
from stoker.units import duration, percent, printable, size

_FEW_SERIES = 3
_LONGEST = 60
_GAP = 2  # between columns
_FOLDED_NAME = 24
_TEST = "metrics.test "
# The columns that are left out first if there is no room for all.
_STANDARD_SPARED = ("first finding", "steps/s", "seconds", "test", "kind")


def show(
    rows: list[tuple[int, dict[str, Any]]],
    columns: list[str] | None,
    damaged: list[str],
    *,
    filtered: bool = False,
) -> None:
    """Print the list of runs, indented by depth; without `columns`, with the series that most of them have."""
    console = Terminal()
    if not rows and not damaged:
        none = "no run matches" if filtered else "no runs yet: start one with `stoker run train.py`"
        console.print(none)
        return
    names = columns if columns is not None else _common_series([row for _, row in rows])
    cells = [_cells(row, depth, names) for depth, row in rows]
    # Columns in which no run has a value are left out; only a name may be folded.
    shown = [title for title in (cells[0] if cells else ()) if any(row[title] != "-" for row in cells)]
    spared = [*_STANDARD_SPARED, "state"]
    if columns is None:
        first, *others = _STANDARD_SPARED
        spared = [*reversed(names[1:]), first, *names[:1], *others]
    # A program that reads the table gets all columns it asked for, however wide they are.
    if columns is None or console.is_terminal:
        spared = [title for title in spared if title not in (columns or ())]
        shown = _choose_columns(shown, cells, console.width, spared)
    console.width = max(console.width, sum(_width_of(title, cells) + _GAP for title in shown) - _GAP)
    table = Table(box=None, pad_edge=False)
    for title in shown:
        table.add_column(title, no_wrap=title != "name", min_width=_width_of(title, cells), overflow="fold")
    for row in cells:
        table.add_row(*(_line(row[title]) for title in shown))
    console.print(table)
    for line in damaged:
        console.print(_line(line, "yellow"))


def _choose_columns(
    titles: list[str], cells: list[dict[str, str]], width: int, spared: Iterable[str]
) -> list[str]:
    """Return the columns for which there is room. Half a number would be useless, so columns are left out whole."""
    wide = {title: _width_of(title, cells) + _GAP for title in titles}
    for title in spared:
        if sum(wide.values()) - _GAP <= width:
            break
        wide.pop(title, None)
    return list(wide)


def _width_of(title: str, cells: list[dict[str, str]]) -> int:
    """Return the width that a column needs. A long name can be folded."""
    widest = max(len(title), *(len(row[title]) for row in cells)) if cells else len(title)
    return min(widest, _FOLDED_NAME) if title == "name" else widest


def _cells(row: dict[str, Any], depth: int, names: list[str]) -> dict[str, str]:
    """Return the cells of a row by the titles of their columns."""
    name = f"{row['program']} {row['arguments']}".strip() if row["kind"] == "run" else row["name"]
    return {
        "id": row["id"],
        "name": f"{'  ' * (depth - 1)}└ {name}" if depth else name,
        "kind": row["kind"],
        "state": _state(row),
        "seconds": "-" if row["seconds"] is None else f"{row['seconds']:.1f}",
        "steps/s": "-" if row["steps_per_s"] is None else rate(row["steps_per_s"]),
        "test": _describe_test(row),
        **{name: _value(find_value(row, name)) for name in names},
        "first finding": row.get("finding") or "-",
    }


def _describe_test(row: dict[str, Any]) -> str:
    """Return the first score of a recipe's model on its test rows."""
    found = [(name, value) for name, value in row.items() if name.startswith(_TEST)]
    return f"{found[0][0].removeprefix(_TEST)} {_value(found[0][1])}" if found else "-"


def show_one(run: dict[str, Any]) -> None:
    """Print everything about a run."""
    console = Terminal()
    console.print(_line(f"{run['name']}  {run['id']}", "bold"))
    facts = {
        "kind": run["kind"],
        "state": _state(run) + (f": {run['error']}" if run["error"] else ""),
        "program": f"{run['program']} {' '.join(run['arguments'])}".strip(),
        "started": _moment(run["started"]),
        "took": "-" if run["seconds"] is None else duration(run["seconds"]),
        "steps": _value(run["steps"]),
        "parent": run["parent"] or "-",
        "commit": (run["git_commit"] or "-") + (" with uncommitted changes" if run["git_diff"] else ""),
    }
    _pairs(console, "", facts)
    _pairs(console, "parameters", run["parameters"])
    _series(console, run["series"])
    _pairs(console, "ledger", {account: duration(seconds) for account, seconds in run["ledger"].items()})
    found = {f"{f['kind']} {f['file']}:{f['line']}": f["title"] for f in run["findings"]}
    _pairs(console, "findings", found)
    for one in run["rollouts"]:
        console.print(_line(f"candidate of {one.get('model')} {one.get('path')!r}: {_conclusion(one)}"))
    for one in run["artifacts"]:
        much = "" if one["size"] is None else f", {size(one['size'])}"
        where = one["path"] or one["name"]
        console.print(_line(f"{one['relation']} {one['kind']} {where!r}{much}"))
        console.print(_line(f"  {one['hash']}"))
    _pairs(console, "versions", run["versions"])
    _pairs(console, "machine", run["machine"])


def _conclusion(found: dict[str, Any]) -> str:
    """Say how a candidate's answers compare with the model's."""
    changed = percent(found.get("changed") or 0.0)
    return (
        f"{found.get('conclusion')} ({changed} of rows changed in {_value(found.get('requests'))} requests)"
    )


def show_differences(found: Differences) -> None:
    """Print what was changed, then what this did."""
    console = Terminal()
    for side, run in (("A", found.a), ("B", found.b)):
        console.print(_line(f"{side}  {run}", "bright_black"))
    if not found.changed:
        console.print("nothing was changed between them, as far as the store knows")
    for section, differences in found.changed.items():
        _differences(console, section, differences)
    results = (
        ("results, at the end", found.results),
        ("speed", found.speed),
        ("ledger, seconds", found.ledger),
    )
    for title, beside in results:
        if beside:
            _differences(console, title, beside)


def show_audit(rows: list[dict[str, Any]]) -> None:
    """Print the audit, oldest first."""
    console = Terminal()
    table = Table(box=None, pad_edge=False)
    for title in ("row", "time", "by", "event", "run", "details"):
        table.add_column(title, no_wrap=title in ("row", "time", "run"))
    for row in rows:
        details = (str(row["seq"]), _moment(row["time"]), row["actor"], row["event"], row["run"] or "-")
        table.add_row(*(_line(part) for part in (*details, row["details"])))
    console.print(table if rows else "the audit is empty")


def _differences(console: Terminal, title: str, differences: list[Difference]) -> None:
    console.print()
    table = Table(box=None, pad_edge=False)
    for name in (title, "A", "B", "") if _numbers(differences) else (title, "A", "B"):
        table.add_column(name, overflow="fold")
    for one in differences:
        table.add_row(*map(_line, (one.name, _value(one.a), _value(one.b), _change(one))))
    console.print(table)


def _numbers(differences: list[Difference]) -> bool:
    return any(_change(one) for one in differences)


def _change(one: Difference) -> str:
    """Return the size of the change, if both values are numbers."""
    a, b = one.a, one.b
    if not isinstance(a, int | float) or not isinstance(b, int | float) or not a or isinstance(a, bool):
        return ""
    return f"{(b - a) / abs(a):+.1%}"


def _common_series(rows: list[dict[str, Any]]) -> list[str]:
    series = (name.removeprefix("metrics.") for row in rows for name in row if name.startswith("metrics."))
    counted = Counter(
        name for name in series if not name.startswith(("ledger/", "event/", "test ")) and name != "epoch"
    )
    return [name for name, _ in counted.most_common(_FEW_SERIES)]


def _pairs(console: Terminal, title: str, pairs: dict[str, Any]) -> None:
    if not pairs:
        return
    if title:
        console.print(Text(f"\n{title}", style="bold"))
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, value in pairs.items():
        table.add_row(_line(f"  {name}" if title else name), _line(_value(value)))
    console.print(table)


def _series(console: Terminal, series: dict[str, dict[str, Any]]) -> None:
    if not series:
        return
    console.print()
    table = Table(box=None, pad_edge=False)
    for title in ("series", "last", "least", "most", "step", "points"):
        table.add_column(title)
    for name, one in series.items():
        figures = (one["last"], one["min"], one["max"], one["last_step"], one["count"])
        table.add_row(_line(name), *(_value(figure) for figure in figures))
    console.print(table)


def _line(text: str, style: str = "") -> Text:
    """Return untrusted text in one line: a name with a line break must not look like two runs."""
    return Text(printable(text), style=style)


def _state(row: dict[str, Any]) -> str:
    code = row.get("exit_code")
    return f"{row['state']} ({code})" if code else str(row["state"])


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _value(value: Any) -> str:
    if value is None:
        return "-"
    text = f"{value:.5g}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
