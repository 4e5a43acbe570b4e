"""Import MLflow's runs from its server, from the database behind it, or from a directory `mlruns`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from stoker.errors import UsageError, first_line, name_extra
from stoker.tracking.store.importing.imported_run import ImportedRun, make_id
from stoker.tracking.store.mlflow_rest import MlflowServer, parse_number
from stoker.tracking.store.plain_values import JsonObject

_STATES = {"FINISHED": "finished", "RUNNING": "running", "FAILED": "failed", "KILLED": "interrupted"}
# In a directory's files, states are numbers.
_NUMBERED = {"1": "RUNNING", "3": "FINISHED", "4": "FAILED", "5": "KILLED"}
_PARENT, _NAME, _COMMIT, _PROGRAM = (
    "mlflow.parentRunId",
    "mlflow.runName",
    "mlflow.source.git.commit",
    "mlflow.source.name",
)

Points: TypeAlias = list[tuple[int, float, float]]


def read_server(url: str) -> Iterator[ImportedRun]:
    """Read all runs of a tracking server.

    Raises:
        UsageError: the server does not answer.
    """
    server = MlflowServer(url)
    for experiment in server.experiments():
        for run in server.runs(experiment["experiment_id"]):
            info, data = run["info"], run.get("data", {})
            params = {one["key"]: one["value"] for one in data.get("params", [])}
            tags = {one["key"]: one["value"] for one in data.get("tags", [])}
            series: dict[str, Points] = {}
            for metric in data.get("metrics", []):
                found = server.points(info["run_id"], metric["key"])
                points = [
                    (int(p.get("step", 0)), int(p["timestamp"]) / 1000, parse_number(p["value"]))
                    for p in found
                ]
                series[metric["key"]] = sorted(points, key=lambda point: (point[1], point[0]))
            yield _make_run(url, info, experiment["name"], params, tags, series)


def read_database(url: str) -> Iterator[ImportedRun]:
    """Read all runs in MLflow's database, of any kind that SQLAlchemy knows.

    Raises:
        UsageError: the database is not MLflow's, or cannot be read.
        StokerError: SQLAlchemy is not installed.
    """
    try:
        import sqlalchemy as sa
    except ModuleNotFoundError as error:
        raise name_extra("importing from MLflow's database", error) or error from None

    tables = sa.MetaData()
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    try:
        tables.reflect(engine, only=["runs", "experiments", "params", "tags", "metrics"])
    except sa.exc.SQLAlchemyError as error:
        raise UsageError(f"{url} is not an MLflow database ({first_line(error)})") from None
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
                value = float("nan") if point.is_nan else parse_number(point.value)
                series.setdefault(point.key, []).append((point.step, point.timestamp / 1000, value))
            info = {**row, "run_id": run}
            yield _make_run(url, info, row["experiment"], named[0], named[1], series)


def read_directory(directory: Path) -> Iterator[ImportedRun]:
    """Read all runs in a directory `mlruns`, or in the directory of one experiment."""
    for meta in sorted(directory.glob("**/meta.yaml")):
        place = meta.parent
        if not (place / "metrics").is_dir() and not (place / "params").is_dir():
            continue
        info = _read_yaml(meta)
        experiment = _read_yaml(place.parent / "meta.yaml").get("name", "")
        info["status"] = _NUMBERED.get(info.get("status", ""), info.get("status", ""))
        params, tags = (
            {one.name: one.read_text("utf-8").strip() for one in _list_files(place / kind)}
            for kind in ("params", "tags")
        )
        series: dict[str, Points] = {}
        for file in _list_files(place / "metrics"):
            lines = (line.split() for line in file.read_text("utf-8").splitlines())
            name = file.relative_to(place / "metrics").as_posix()
            series[name] = [
                (int((*line, "0")[2]), int(line[0]) / 1000, parse_number(line[1])) for line in lines
            ]
        yield _make_run(str(directory.resolve()), info, experiment, params, tags, series)


def _list_files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.rglob("*") if path.is_file())


def _read_yaml(path: Path) -> dict[str, str]:
    """Read the `name: value` lines of a file; MLflow writes nothing else there."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.partition(": ") for line in lines if not line.startswith((" ", "#", "-")))
    return {name: value.strip().strip("'\"") for name, _, value in pairs}


def _make_run(
    source: str,
    info: JsonObject,
    experiment: str,
    params: Mapping[str, object],
    tags: dict[str, str],
    series: dict[str, Points],
) -> ImportedRun:
    run = str(info["run_id"])
    started = _to_seconds(info.get("start_time")) or 0.0
    ended = _to_seconds(info.get("end_time"))
    parent = tags.get(_PARENT)
    columns = {
        "name": tags.get(_NAME) or info.get("run_name") or run,
        "program": tags.get(_PROGRAM, ""),
        "parameters": {**params, **({"experiment": experiment} if experiment else {})},
        "git_commit": tags.get(_COMMIT),
        "state": _STATES.get(str(info.get("status")), "finished"),
        "parent": make_id(f"mlflow {parent}") if parent else None,
        "started": started,
        "ended": ended,
        "seen": ended or started,
    }
    # The id does not depend on how the run is read.
    return ImportedRun(make_id(f"mlflow {run}"), f"{source} {run}", columns, series)


def _to_seconds(milliseconds: int | str | None) -> float | None:
    return int(milliseconds) / 1000 if milliseconds not in (None, "", "null", "None", 0) else None
