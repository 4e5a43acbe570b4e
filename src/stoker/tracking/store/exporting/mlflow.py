"""Runs for MLflow's server, over its REST API: values in batches of a thousand, as many as it takes at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stoker.tracking.store.mlflow_rest import Server, as_json
from stoker.tracking.store.queries import Reader, RunRow

_STATES = {"finished": "FINISHED", "running": "RUNNING", "failed": "FAILED"}
_MOST_METRICS, _MOST_PARAMS = 1000, 100
# MLflow refuses longer ones.
_LONGEST_PARAM, _LONGEST_TAG = 6000, 5000


def export(reader: Reader, rows: list[RunRow], url: str, experiment: str = "stoker") -> list[str]:
    """Write runs to a tracking server; their ids there.

    Raises:
        UsageError: it does not answer, or refuses.
    """
    server = Server(url)
    place = _experiment(server, experiment)
    return [_export(server, reader, row, place) for row in rows]


def _experiment(server: Server, name: str) -> str:
    for found in server.experiments():
        if found["name"] == name:
            return str(found["experiment_id"])
    return str(server.post("experiments/create", name=name)["experiment_id"])


def _export(server: Server, reader: Reader, row: RunRow, experiment: str) -> str:
    columns = row.columns
    tags = {
        "mlflow.source.name": columns["program"],
        "mlflow.source.git.commit": columns["git_commit"],
        "stoker.run": row.id,
        "stoker.kind": columns["kind"],
        "stoker.parent": columns["parent"],
    }
    tags |= {f"stoker.{one['relation']}.{one['name']}": one["hash"] for one in reader.artifacts(row.id)}
    made = server.post(
        "runs/create",
        experiment_id=experiment,
        run_name=columns["name"] or row.id,
        start_time=round(columns["started"] * 1000),
        tags=[{"key": _key(k), "value": str(v)[:_LONGEST_TAG]} for k, v in tags.items() if v is not None],
    )
    run = str(made["run"]["info"]["run_id"])
    for metrics in _batches(_metrics(reader, row), _MOST_METRICS):
        server.post("runs/log-batch", run_id=run, metrics=metrics)
    params = ({"key": _key(k), "value": str(v)[:_LONGEST_PARAM]} for k, v in columns["parameters"].items())
    for batch in _batches(params, _MOST_PARAMS):
        server.post("runs/log-batch", run_id=run, params=batch)
    ended = {} if columns["ended"] is None else {"end_time": round(columns["ended"] * 1000)}
    server.post("runs/update", run_id=run, status=_STATES.get(row.state, "KILLED"), **ended)
    return run


def _metrics(reader: Reader, row: RunRow) -> Iterator[dict[str, Any]]:
    for name in row.series:
        for step, at, value in reader.points(row.id, name):
            yield {"key": _key(name), "value": as_json(value), "timestamp": round(at * 1000), "step": step}


def _key(name: str) -> str:
    """A name MLflow takes: letters, digits and a few signs."""
    return "".join(sign if sign.isalnum() or sign in "_-. /:" else "_" for sign in name) or "_"


def _batches(items: Iterator[dict[str, Any]], most: int) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for item in items:
        batch.append(item)
        if len(batch) == most:
            yield batch
            batch = []
    if batch:
        yield batch
