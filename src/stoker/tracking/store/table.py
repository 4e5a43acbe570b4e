"""`stoker.runs`: the runs of a store as a table, and which of them in which order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stoker.errors import UsageError
from stoker.tracking.store import address
from stoker.tracking.store.queries import RunRow, reading

_COLUMNS = (
    "id",
    "name",
    "kind",
    "program",
    "parent",
    "worker",
    "git_commit",
    "exit_code",
    "error",
    "started",
)
_LONGEST_SHOWN = 200
_FIGURES = ("steps", "steps_per_s", "examples_per_s", "wall_s")
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
    "~": lambda a, b: str(b).lower() in str(a).lower(),
}


def runs(
    where: str | Sequence[str] = (),
    sort: str = "-started",
    limit: int | None = None,
    *,
    store: str | None = None,
) -> list[dict[str, Any]]:
    """The runs of the store, a dict each: `pandas.DataFrame(stoker.runs())` is a table of them.

    Parameters are `params.NAME`, the last values of series `metrics.NAME`.

    Args:
        where: conditions, all of which must hold: `"loss < 0.1"`, `"params.rate = 0.001"`, `"name ~ base"`.
        sort: by which column, with `-` in front from the largest down; runs without it come last.
        limit: how many at most.
        store: the URL of the store, if not the one of `STOKER_STORE` or `[tool.stoker]`.

    Raises:
        UsageError: a condition that cannot be read; no store.
        Trouble: the store cannot be read.
    """
    with reading(address.needed(store)) as reader:
        rows = [flat(row) for row in reader.runs()]
    return selected(rows, [where] if isinstance(where, str) and where else where, sort, limit)


def flat(row: RunRow) -> dict[str, Any]:
    """A run as one row of a table."""
    columns = row.columns
    made: dict[str, Any] = {name: columns[name] for name in _COLUMNS}
    made |= {"arguments": " ".join(columns["arguments"]), "state": row.state, "seconds": row.seconds}
    made |= {name: columns[name] for name in _FIGURES}
    made |= {f"params.{name}": value for name, value in columns["parameters"].items()}
    made |= {f"metrics.{name}": series.last for name, series in row.series.items()}
    return made


def selected(
    rows: Iterable[dict[str, Any]], where: Iterable[str], sort: str, limit: int | None
) -> list[dict[str, Any]]:
    """The rows for which all conditions hold, in order."""
    conditions = [_condition(text) for text in where]
    kept = [row for row in rows if all(holds(row) for holds in conditions)]
    name = sort.removeprefix("-")
    having = [row for row in kept if _sortable(value_of(row, name))]
    having.sort(key=lambda row: _rank(value_of(row, name)), reverse=sort.startswith("-"))
    lacking = [row for row in kept if not _sortable(value_of(row, name))]
    return [*having, *lacking][:limit]


def value_of(row: dict[str, Any], name: str) -> Any:
    """A column by its name; `loss` is `metrics.loss`, or else `params.loss`."""
    for full in (name, f"metrics.{name}", f"params.{name}"):
        if full in row:
            return row[full]
    return None


def _condition(text: str) -> Callable[[dict[str, Any]], bool]:
    name, mark, wanted = _split(text)
    sign = _SIGNS[mark]

    def holds(row: dict[str, Any]) -> bool:
        value = value_of(row, name)
        if value is None:
            return mark == "!="
        if isinstance(value, bool | str) or mark == "~":
            return sign(str(value), wanted)
        try:
            return sign(float(value), float(wanted))
        except (TypeError, ValueError):
            return mark == "!="

    return holds


def _split(text: str) -> tuple[str, str, str]:
    """Name, sign and value. Conditions come in links, from anybody: each character is looked at once."""
    start = next((place for place, letter in enumerate(text) if letter in "=!<>~"), len(text))
    sign = next((mark for mark in (text[start : start + 2], text[start : start + 1]) if mark in _SIGNS), "")
    name, value = text[:start].strip(), text[start + len(sign) :].strip().strip("'\"")
    if not name or not sign:
        shown = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
        raise UsageError(f"cannot read the condition {shown!r}: write NAME SIGN VALUE, such as 'loss < 0.1'")
    return name, sign, value


def _sortable(value: Any) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers before text, so that a column may have both."""
    return (0, value) if isinstance(value, int | float) else (1, str(value))
