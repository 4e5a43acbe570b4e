"""MLflow's runs: from its server, from the database of its backend store, or from a directory of `mlruns`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stoker.errors import UsageError
from stoker.tracking.store.importing.foreign import Foreign, id_of
from stoker.tracking.store.mlflow_rest import Server, as_number

_STATES = {"FINISHED": "finished", "RUNNING": "running", "FAILED": "failed", "KILLED": "interrupted"}
# The numbers of the states in a directory's files.
_NUMBERED = {"1": "RUNNING", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_PARENT, _NAME, _COMMIT, _PROGRAM = (
    "mlflow.parentRunId",
    "mlflow.runName",
    "mlflow.source.git.commit",
    "mlflow.source.name",
)

Points = list[tuple[int, float, float]]


def from_server(url: str) -> Iterator[Foreign]:
    """All runs a tracking server has.

    Raises:
        UsageError: it does not answer.
    """
    server = Server(url)
    for experiment in server.experiments():
        for run in server.runs(experiment["experiment_id"]):
            info, data = run["info"], run.get("data", {})
            params = {one["key"]: one["value"] for one in data.get("params", [])}
            tags = {one["key"]: one["value"] for one in data.get("tags", [])}
            series: dict[str, Points] = {}
            for metric in data.get("metrics", []):
                found = server.points(info["run_id"], metric["key"])
                points = [
                    (int(p.get("step", 0)), int(p["timestamp"]) / 1000, as_number(p["value"])) for p in found
                ]
                series[metric["key"]] = sorted(points, key=lambda point: (point[1], point[0]))
            yield _foreign(url, info, experiment["name"], params, tags, series)


def from_database(url: str) -> Iterator[Foreign]:
    """All runs in the database of a backend store.

    Raises:
        UsageError: it is not one, or cannot be read.
    """
    import sqlalchemy as sa

    tables = sa.MetaData()
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    try:
        tables.reflect(engine, only=["runs", "experiments", "params", "tags", "metrics"])
    except sa.exc.SQLAlchemyError as error:
        raise UsageError(f"{url} is not a database of MLflow's ({str(error).splitlines()[0]})") from None
    runs, experiments = tables.tables["runs"], tables.tables["experiments"]
    params, tags, metrics = (tables.tables[name] for name in ("params", "tags", "metrics"))
    with engine.connect() as connection:
        joined = sa.select(runs, experiments.c.name.label("experiment")).join(
            experiments, experiments.c.experiment_id == runs.c.experiment_id
        )
        for row in connection.execute(joined.order_by(runs.c.start_time)).mappings():
            run = row["run_uuid"]
            of_run = [sa.select(t.c.key, t.c.value).where(t.c.run_uuid == run) for t in (params, tags)]
            named = [{key: value for key, value in connection.execute(statement)} for statement in of_run]  # noqa: C416
            series: dict[str, Points] = {}
            wanted = sa.select(metrics).where(metrics.c.run_uuid == run)
            for point in connection.execute(
                wanted.order_by(metrics.c.key, metrics.c.timestamp, metrics.c.step)
            ):
                value = float("nan") if point.is_nan else as_number(point.value)
                series.setdefault(point.key, []).append((point.step, point.timestamp / 1000, value))
            info = {**row, "run_id": run}
            yield _foreign(url, info, row["experiment"], named[0], named[1], series)


def from_directory(directory: Path) -> Iterator[Foreign]:
    """All runs in a directory of `mlruns`: an experiment, or a directory of them."""
    for meta in sorted(directory.glob("**/meta.yaml")):
        place = meta.parent
        if not (place / "metrics").is_dir() and not (place / "params").is_dir():
            continue
        info = _yaml(meta)
        experiment = _yaml(place.parent / "meta.yaml").get("name", "")
        info["status"] = _NUMBERED.get(info.get("status", ""), info.get("status", ""))
        params, tags = (
            {one.name: one.read_text("utf-8").strip() for one in _files(place / kind)}
            for kind in ("params", "tags")
        )
        series: dict[str, Points] = {}
        for file in _files(place / "metrics"):
            lines = (line.split() for line in file.read_text("utf-8").splitlines())
            name = file.relative_to(place / "metrics").as_posix()
            series[name] = [(int((*line, "0")[2]), int(line[0]) / 1000, as_number(line[1])) for line in lines]
        yield _foreign(str(directory.resolve()), info, experiment, params, tags, series)


def _files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _yaml(path: Path) -> dict[str, Any]:
    """The plain `name: value` lines of a file: all that MLflow writes there."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(": ") for line in lines if not line.startswith((" ", "#", "-")))
    return {name: value.strip().strip("'\"") for name, _, value in pairs}


def _foreign(
    source: str,
    info: dict[str, Any],
    experiment: str,
    params: dict[str, Any],
    tags: dict[str, str],
    series: dict[str, Points],
) -> Foreign:
    run = str(info["run_id"])
    started = _seconds(info.get("start_time")) or 0.0
    ended = _seconds(info.get("end_time"))
    parent = tags.get(_PARENT)
    columns = {
        "name": tags.get(_NAME) or info.get("run_name") or run,
        "program": tags.get(_PROGRAM, ""),
        "parameters": {**params, **({"experiment": experiment} if experiment else {})},
        "git_commit": tags.get(_COMMIT),
        "state": _STATES.get(str(info.get("status")), "finished"),
        "parent": id_of(f"mlflow {parent}") if parent else None,
        "started": started,
        "ended": ended,
        "seen": ended or started,
    }
    # A run is the same run, whichever way it is read.
    return Foreign(id_of(f"mlflow {run}"), f"{source} {run}", columns, series)


def _seconds(milliseconds: Any) -> float | None:
    return int(milliseconds) / 1000 if milliseconds not in (None, "", "null", "None", 0) else None
