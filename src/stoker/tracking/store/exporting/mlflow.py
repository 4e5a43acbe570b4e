"""Export runs to an MLflow server over its REST API."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TypeVar

from stoker.tracking.store.mlflow_rest import MlflowServer, format_number
from stoker.tracking.store.queries import Reader
from stoker.tracking.store.schema import RunRow

T = TypeVar("T")

_STATES = {"finished": "FINISHED", "running": "RUNNING", "failed": "FAILED"}
# The most that MLflow takes in one request, and the longest values it takes.
_MOST_METRICS, _MOST_PARAMS = 1000, 100
_LONGEST_PARAM, _LONGEST_TAG = 6000, 5000


def export(reader: Reader, rows: list[RunRow], url: str, experiment: str = "stoker") -> list[str]:
    """Write runs to a tracking server, and return their ids there.

    Raises:
        UsageError: the server does not answer, or refuses the request.
    """
    server = MlflowServer(url)
    place = _find_experiment(server, experiment)
    return [_export_run(server, reader, row, place) for row in rows]


def _find_experiment(server: MlflowServer, name: str) -> str:
    for found in server.experiments():
        if found["name"] == name:
            return str(found["experiment_id"])
    return str(server.post("experiments/create", name=name)["experiment_id"])


def _export_run(server: MlflowServer, reader: Reader, row: RunRow, experiment: str) -> str:
    tags = {
        "mlflow.source.name": row.program,
        "mlflow.source.git.commit": row.git_commit,
        "stoker.run": row.id,
        "stoker.kind": row.kind,
        "stoker.parent": row.parent,
    }
    tags |= {f"stoker.{link.relation}.{link.name}": link.hash for link in reader.artifacts(row.id)}
    made = server.post(
        "runs/create",
        experiment_id=experiment,
        run_name=row.name or row.id,
        start_time=round(row.started * 1000),
        tags=[
            {"key": _clean_key(k), "value": str(v)[:_LONGEST_TAG]} for k, v in tags.items() if v is not None
        ],
    )
    run = str(made["run"]["info"]["run_id"])
    for metrics in _split_batches(_list_metrics(reader, row), _MOST_METRICS):
        server.post("runs/log-batch", run_id=run, metrics=metrics)
    params = ({"key": _clean_key(k), "value": str(v)[:_LONGEST_PARAM]} for k, v in row.parameters.items())
    for batch in _split_batches(params, _MOST_PARAMS):
        server.post("runs/log-batch", run_id=run, params=batch)
    ended = {} if row.ended is None else {"end_time": round(row.ended * 1000)}
    server.post("runs/update", run_id=run, status=_STATES.get(row.state, "KILLED"), **ended)
    return run


def _list_metrics(reader: Reader, row: RunRow) -> Iterator[dict[str, object]]:
    for name in row.series:
        for step, at, value in reader.points(row.id, name):
            yield {
                "key": _clean_key(name),
                "value": format_number(value),
                "timestamp": round(at * 1000),
                "step": step,
            }


def _clean_key(name: str) -> str:
    """Replace the characters that MLflow does not take in a name."""
    return "".join(sign if sign.isalnum() or sign in "_-. /:" else "_" for sign in name) or "_"


def _split_batches(items: Iterator[T], most: int) -> Iterator[list[T]]:
    while batch := list(islice(items, most)):
        yield batch
