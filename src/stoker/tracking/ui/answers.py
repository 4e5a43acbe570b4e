"""The store as JSON, for each view of the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from stoker.tracking.store.differing import diff
from stoker.tracking.store.queries import Reader, RunRow
from stoker.tracking.store.table import flat, selected

# Of one series on the screen: more cannot be told apart.
MOST_POINTS = 2000
_SPARK_POINTS = 40
_MOST_SPARKS = 100
_MOST_RUNS = 10_000
# Of the runs that are connected with one, and of those inside it.
_MOST_RELATED = 300
_MOST_LINKS = 2000


def runs(reader: Reader, where: list[str], sort: str, limit: int) -> dict[str, Any]:
    """The list: rows, and which columns there are to choose from."""
    found = selected((flat(row) for row in reader.runs()), where, sort, None)
    counted = Counter(name for row in found for name in row if name.startswith(("params.", "metrics.")))
    # Those that most runs have come first.
    columns = sorted(counted, key=lambda name: (-counted[name], name))
    return {"count": len(found), "rows": found[: min(limit, _MOST_RUNS)], "columns": columns}


def sparks(reader: Reader, names: list[str], series: str) -> dict[str, list[Any]]:
    """One series of several runs, as small as a line in a table."""
    return {run: _values(reader.thinned(run, series, _SPARK_POINTS)) for run in names[:_MOST_SPARKS]}


def run(reader: Reader, name: str) -> dict[str, Any]:
    """Everything about a run but its points."""
    run_id = reader.resolve(name)
    (row,) = reader.runs(run_id)
    return {
        **summary(row),
        "git_diff": reader.column(run_id, "git_diff"),
        "ledger": reader.ledger(run_id),
        "findings": reader.findings(run_id),
        "lineage": lineage(reader, run_id),
        "family": [summary(one) for one in _family(reader, row)],
    }


def summary(row: RunRow) -> dict[str, Any]:
    """A run's columns and its series, without points."""
    series = {name: asdict(one) for name, one in row.series.items()}
    return {**row.columns, "state": row.state, "seconds": row.seconds, "series": series}


def series(reader: Reader, run_id: str, name: str, most: int = MOST_POINTS) -> dict[str, list[Any]]:
    """A series, thinned in SQL: steps, times, values."""
    points = reader.thinned(run_id, name, min(most, MOST_POINTS))
    return {
        "steps": [step for step, _, _ in points],
        "times": [at for _, at, _ in points],
        "values": _values(points),
    }


def differences(reader: Reader, names: list[str]) -> list[dict[str, Any]]:
    """Every run but the first, compared with the first."""
    ids = [reader.resolve(name) for name in names]
    return [asdict(diff(reader, ids[0], other)) for other in ids[1:]]


def lineage(reader: Reader, run_id: str) -> dict[str, Any]:
    """From data to model to whatever used it: artifacts and runs that are connected with a run, and how.

    An artifact that some run has made leads to every run that has to do with it; data that nobody has made leads
    nowhere: otherwise all runs on one data set would be connected. Each link is read once for its run and once for its
    artifact. `left_out` counts runs and links beyond the nearest ones, which are all that a page can show.
    """
    found, links = {run_id: None}, dict[tuple[str, int, str], dict[str, Any]]()
    seen, frontier, left_out = set[int](), [run_id], 0
    while frontier:
        own = list(reader.links(runs=frontier))
        touched = {link["id"] for link in own} - seen
        seen |= touched
        around = list(reader.links(artifacts=touched))
        made = {link["id"] for link in around if link["relation"] == "makes"}
        near = dict.fromkeys(
            link["run"] for link in around if link["id"] in made and link["run"] not in found
        )
        frontier = list(near)[: _MOST_RELATED - len(found)]
        left_out += len(near) - len(frontier)
        found |= dict.fromkeys(frontier)
        links |= {(link["run"], link["id"], link["relation"]): link for link in (*own, *around)}
    kept = [link for link in links.values() if link["run"] in found]
    left_out += max(0, len(kept) - _MOST_LINKS)
    kept = kept[:_MOST_LINKS]
    names = {row.id: row.columns["name"] for row in reader.runs(*found)}
    return {
        "runs": [{"id": one, "name": names.get(one, one)} for one in sorted(found)],
        "artifacts": list({link["id"]: link for link in kept}.values()),
        "links": [
            {"run": link["run"], "artifact": link["id"], "relation": link["relation"]} for link in kept
        ],
        "left_out": left_out,
    }


def prices(reader: Reader) -> list[dict[str, Any]]:
    """Which line of which file has cost how many seconds in all runs so far, dearest first."""
    return reader.prices()


def _family(reader: Reader, row: RunRow) -> list[RunRow]:
    """The runs around a run, and those inside it."""
    found = reader.runs(*children) if (children := reader.children(row.id, _MOST_RELATED)) else []
    while (parent := row.columns["parent"]) and all(one.id != parent for one in found):
        above = reader.runs(parent)
        if not above:
            break
        (row,) = above
        found.append(row)
    return found


def _values(points: list[tuple[int, float, float]]) -> list[Any]:
    return [value for _, _, value in points]
