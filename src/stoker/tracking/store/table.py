"""`stoker.runs`: the runs of a store as a table, filtered and sorted."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stoker.errors import UsageError, suggest
from stoker.tracking.store import address
from stoker.tracking.store.plain_values import JsonObject
from stoker.tracking.store.queries import open_reader
from stoker.tracking.store.schema import RunRow

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
_FOUND = ("arguments", "state", "seconds", "finding")
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "~": lambda a, b: str(b).lower() in str(a).lower(),
}


def runs(
    where: str | Sequence[str] = (),
    sort: str = "-started",
    limit: int | None = None,
    *,
    store: str | None = None,
) -> list[JsonObject]:
    """List the runs of the store, one dict each; `pandas.DataFrame(stoker.runs())` makes a table of them.

    Parameters are in `params.NAME`, the last values of series in `metrics.NAME`.

    Args:
        where: conditions that must all hold: `"loss < 0.1"`, `"params.rate = 0.001"`, `"name ~ base"`.
        sort: the column to sort by; with a leading `-`, largest first. Runs without it come last.
        limit: the most runs to return.
        store: the URL of the store, if not that of `STOKER_STORE` or `[tool.stoker]`.

    Raises:
        UsageError: a condition cannot be read, or the store is switched off.
        StoreError: the store cannot be read.
    """
    with open_reader(address.require(store)) as reader:
        rows = [flatten(row) for row in reader.runs()]
    return select_rows(rows, [where] if isinstance(where, str) and where else where, sort, limit)


def flatten(row: RunRow) -> JsonObject:
    """Turn a run into one row of a table."""
    made: JsonObject = {name: getattr(row, name) for name in _COLUMNS}
    made |= {"arguments": " ".join(row.arguments), "state": row.state, "seconds": row.seconds}
    made |= {name: getattr(row, name) for name in _FIGURES}
    made |= {f"params.{name}": value for name, value in row.parameters.items()}
    made |= {f"metrics.{name}": series.last for name, series in row.series.items()}
    return made


def select_rows(
    rows: Iterable[JsonObject], where: Iterable[str], sort: str, limit: int | None
) -> list[JsonObject]:
    """Select the rows for which all conditions hold, and sort them.

    Raises:
        UsageError: a condition cannot be read, or no row has the column of a condition or the column to sort by.
    """
    rows, name, texts = list(rows), sort.removeprefix("-"), list(where)
    conditions = [_parse_condition(text) for text in texts]
    known = {one for row in rows for one in _list_names(row)}
    if rows and name not in known:
        raise UsageError(f"no run has {name!r} to sort by{suggest(name, sorted(known))}")
    # Every run of the store has these columns, though a record that is not in the store may lack some.
    known |= {*_COLUMNS, *_FIGURES, *_FOUND}
    # A column that no run has differs from any value.
    unknown = [asked for asked, sign, _ in map(_split, texts) if sign != "!=" and asked not in known]
    if rows and unknown:
        raise UsageError(
            f"no run has {_shorten(unknown[0])!r}{suggest(unknown[0][:_LONGEST_SHOWN], sorted(known))}"
        )
    kept = [row for row in rows if all(holds(row) for holds in conditions)]
    having = [row for row in kept if _is_sortable(find_value(row, name))]
    having.sort(key=lambda row: _make_sort_key(find_value(row, name)), reverse=sort.startswith("-"))
    lacking = [row for row in kept if not _is_sortable(find_value(row, name))]
    return [*having, *lacking][:limit]


def nest_rows(rows: Sequence[JsonObject]) -> list[tuple[int, JsonObject]]:
    """Put each run after the run that contains it, oldest first, with its depth; the others stay in order."""
    known = {row["id"] for row in rows}
    inside: dict[object, list[JsonObject]] = {}
    for row in rows:
        parent = row.get("parent")
        inside.setdefault(parent if parent in known and parent != row["id"] else None, []).append(row)
    nested: list[tuple[int, JsonObject]] = []
    waiting = [(0, row) for row in reversed(inside.pop(None, []))]
    while waiting:
        depth, row = waiting.pop()
        nested.append((depth, row))
        # The newest is pushed first, so the oldest comes out first.
        for child in sorted(inside.pop(row["id"], []), key=lambda one: float(one["started"]), reverse=True):
            waiting.append((depth + 1, child))
    # Runs that name each other as parents are inside no other run.
    return nested + [(0, row) for left in inside.values() for row in left]


def _list_names(row: JsonObject) -> set[str]:
    """Return the names that `find_value` knows in a row."""
    return {*row, *(name.partition(".")[2] for name in row if name.startswith(("metrics.", "params.")))}


def find_value(row: JsonObject, name: str) -> object:
    """Return the value of a column; `loss` means `metrics.loss`, or else `params.loss`."""
    for full in (name, f"metrics.{name}", f"params.{name}"):
        if full in row:
            return row[full]
    return None


def _parse_condition(text: str) -> Callable[[JsonObject], bool]:
    name, mark, wanted = _split(text)
    sign = _SIGNS[mark]

    def holds(row: JsonObject) -> bool:
        value = find_value(row, name)
        if value is None:
            return mark == "!="
        if isinstance(value, bool | str) or mark == "~":
            return sign(str(value), wanted)
        try:
            number = float(wanted)
        except ValueError:
            return mark == "!="
        return sign(float(value), number) if isinstance(value, int | float) else mark == "!="

    return holds


def _split(text: str) -> tuple[str, str, str]:
    """Split a condition into name, sign and value, in linear time, as anybody's link may contain conditions."""
    start = next((place for place, letter in enumerate(text) if letter in "=!<>~"), len(text))
    sign = next((mark for mark in (text[start : start + 2], text[start : start + 1]) if mark in _SIGNS), "")
    name, value = text[:start].strip(), text[start + len(sign) :].strip()
    if not name or not sign or (not value and sign[0] in "<>"):
        raise UsageError(
            f"cannot read the condition {_shorten(text)!r}: write NAME SIGN VALUE, such as 'loss < 0.1'"
        )
    return name, sign, value.strip("'\"")


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def _is_sortable(value: object) -> bool:
    return value is not None and not (isinstance(value, float) and math.isnan(value))


def _make_sort_key(value: object) -> tuple[int, float | str]:
    """Sort numbers before text, because a column may have both."""
    return (0, value) if isinstance(value, int | float) else (1, str(value))
