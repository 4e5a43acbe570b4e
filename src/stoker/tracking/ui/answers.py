"""The JSON for each view of the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

from stoker.tracking.store.differing import diff
from stoker.tracking.store.linking import MAKES
from stoker.tracking.store.plain_values import JsonObject
from stoker.tracking.store.queries import Reader
from stoker.tracking.store.schema import ArtifactLink, RunRow
from stoker.tracking.store.table import flatten, nest_rows, select_rows

# The most points of a series to show; more could not be told apart on a screen.
MOST_POINTS = 2000
_SPARK_POINTS = 40
_MOST_SPARKS = 100
_MOST_RUNS = 10_000
# The most runs to show that are connected with a run, or inside it.
_MOST_RELATED = 300
_MOST_LINKS = 2000


def list_runs(reader: Reader, where: list[str], sort: str, limit: int) -> JsonObject:
    """Return the list of runs, and the columns to choose from."""
    found = select_rows((flatten(row) for row in reader.runs()), where, sort, None)
    counted = Counter(name for row in found for name in row if name.startswith(("params.", "metrics.")))
    # Columns that most runs have come first.
    columns = sorted(counted, key=lambda name: (-counted[name], name))
    rows = found[: min(limit, _MOST_RUNS)]
    if sort == "-started":
        rows = [{**row, "depth": depth} for depth, row in nest_rows(rows)]
    return {"count": len(found), "rows": rows, "columns": columns}


def draw_sparks(reader: Reader, names: list[str], series: str) -> dict[str, list[float]]:
    """Return one series of several runs, thinned to fit into a line of a table."""
    return {run: _list_values(reader.thin_points(run, series, _SPARK_POINTS)) for run in names[:_MOST_SPARKS]}


def describe_run(reader: Reader, name: str) -> JsonObject:
    """Return everything about a run except its points."""
    row = reader.run(reader.resolve(name))
    return {
        **row.to_dict(),
        "ledger": reader.ledger(row.id),
        "findings": reader.findings(row.id),
        "rollouts": reader.rollouts(row.id),
        "lineage": trace_lineage(reader, row.id),
        "family": [one.to_dict() for one in _find_family(reader, row)],
    }


def read_series(reader: Reader, run_id: str, name: str, most: int = MOST_POINTS) -> dict[str, list[float]]:
    """Return a series as steps, times and values, thinned in SQL."""
    points = reader.thin_points(run_id, name, min(most, MOST_POINTS))
    return {
        "steps": [step for step, _, _ in points],
        "times": [at for _, at, _ in points],
        "values": _list_values(points),
    }


def compare_runs(reader: Reader, names: list[str]) -> list[JsonObject]:
    """Compare every run but the first with the first."""
    ids = [reader.resolve(name) for name in names]
    return [asdict(diff(reader, ids[0], other)) for other in ids[1:]]


def trace_lineage(reader: Reader, run_id: str) -> JsonObject:
    """Return the artifacts and runs that are connected with a run, from the data to the model to the runs that use it.

    An artifact that some run made leads to every run that uses or makes it. Data that no run made leads to no other
    run; otherwise all runs on one data set would be connected. Each link is read once for its run and once for its
    artifact. A page shows only the nearest runs and links; `left_out` counts the others.
    """
    found, links = {run_id: None}, dict[tuple[str, int, str], ArtifactLink]()
    seen, frontier, left_out = set[int](), [run_id], 0
    while frontier:
        own = list(reader.links(runs=frontier))
        touched = {link.id for link in own} - seen
        seen |= touched
        around = list(reader.links(artifacts=touched))
        made = {link.id for link in around if link.relation == MAKES}
        near = dict.fromkeys(link.run for link in around if link.id in made and link.run not in found)
        frontier = list(near)[: _MOST_RELATED - len(found)]
        left_out += len(near) - len(frontier)
        found |= dict.fromkeys(frontier)
        links |= {(link.run, link.id, link.relation): link for link in (*own, *around)}
    kept = [link for link in links.values() if link.run in found]
    left_out += max(0, len(kept) - _MOST_LINKS)
    kept = kept[:_MOST_LINKS]
    names = {row.id: row.name for row in reader.runs(*found)}
    return {
        "runs": [{"id": one, "name": names.get(one, one)} for one in sorted(found)],
        "artifacts": list({link.id: asdict(link) for link in kept}.values()),
        "links": [{"run": link.run, "artifact": link.id, "relation": link.relation} for link in kept],
        "left_out": left_out,
    }


def list_prices(reader: Reader) -> list[JsonObject]:
    """Return what each line of each file has cost in all runs, costliest first."""
    return [asdict(price) for price in reader.prices()]


def _find_family(reader: Reader, row: RunRow) -> list[RunRow]:
    """Return the runs inside a run, and those that contain it."""
    found = reader.runs(*children) if (children := reader.children(row.id, _MOST_RELATED)) else []
    while (parent := row.parent) and all(one.id != parent for one in found):
        above = reader.runs(parent)
        if not above:
            break
        (row,) = above
        found.append(row)
    return found


def _list_values(points: list[tuple[int, float, float]]) -> list[float]:
    return [value for _, _, value in points]
