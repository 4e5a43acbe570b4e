"""The ways of logging and listing that `store.py` measures: `python store_workers.py WAY DIRECTORY`, jobs on stdin.

A job is a line, `NAME COUNT`; the answer a line with the seconds it took. Each way runs in the Python that has it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

RUNS, METRICS, PARAMS = 10_000, 3, 3
# What MLflow takes in one call.
BATCH = 1000


def stoker_way(directory: Path) -> dict[str, Callable[[int], float]]:
    import stoker
    from stoker.tracking.store import address, queries, writer

    url = os.environ.get("BENCH_STORE", f"sqlite:///{directory / 'stoker.db'}")
    run = stoker.track("bench", store=url)
    run.flush()

    def values(count: int) -> float:
        """Until everything is committed."""
        start = time.perf_counter()
        for step in range(count):
            run.log(step, loss=0.5)
        run.flush()
        return time.perf_counter() - start

    def calls(count: int) -> float:
        """What the caller pays."""
        start = time.perf_counter()
        for step in range(count):
            run.log(step, loss=0.5)
        taken = time.perf_counter() - start
        run.flush()
        return taken

    full = address.parse(f"sqlite:///{directory / 'full.db'}")
    filled = False

    def listing(count: int) -> float:
        nonlocal filled
        if not filled:
            _fill_stoker(full)
            filled = True
        start = time.perf_counter()
        with queries.open_reader(full) as reader:
            found = reader.runs()
        taken = time.perf_counter() - start
        assert len(found) == RUNS
        assert len(found[0].series) == METRICS
        return taken

    assert writer
    return {"values": values, "calls": calls, "list": listing}


def _fill_stoker(full: object) -> None:
    from stoker.tracking.store.deleting import write_now
    from stoker.tracking.store.events import Event, RunStarted, ValuesLogged

    columns = {
        "kind": "train",
        "program": "t.py",
        "arguments": [],
        "versions": {},
        "machine": {},
        "state": "finished",
    }
    events: list[Event] = []
    for number in range(RUNS):
        params = {f"p{i}": str(number + i) for i in range(PARAMS)}
        events.append(
            RunStarted(f"r{number}", {**columns, "name": "x", "parameters": params, "started": float(number)})
        )
        events.append(ValuesLogged(f"r{number}", 1, 0.0, {f"m{i}": 0.5 for i in range(METRICS)}))
    write_now(full, events)  # type: ignore[arg-type]


def mlflow_way(directory: Path) -> dict[str, Callable[[int], float]]:
    import mlflow
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient(f"sqlite:///{directory / 'mlflow.db'}")
    experiment = client.create_experiment("bench")
    run = client.create_run(experiment).info.run_id
    place = 0

    def batches(count: int) -> float:
        nonlocal place
        start = time.perf_counter()
        for first in range(0, count, BATCH):
            now = int(time.time() * 1000)
            client.log_batch(run, [Metric("loss", 0.5, now, place + first + i) for i in range(BATCH)])
        place += count
        return time.perf_counter() - start

    def values(count: int) -> float:
        nonlocal place
        start = time.perf_counter()
        for step in range(count):
            client.log_metric(run, "loss", 0.5, step=place + step)
        place += count
        return time.perf_counter() - start

    filled = False

    def listing(count: int) -> float:
        nonlocal filled
        if not filled:
            _fill_mlflow(directory / "mlflow.db", client.create_experiment("full"))
            filled = True
        full = client.get_experiment_by_name("full")
        mlflow.set_tracking_uri(f"sqlite:///{directory / 'mlflow.db'}")
        start = time.perf_counter()
        found = mlflow.search_runs([full.experiment_id], max_results=RUNS, output_format="list")
        taken = time.perf_counter() - start
        assert len(found) == RUNS
        assert len(found[0].data.metrics) == METRICS
        return taken

    return {"log_batch": batches, "log_metric": values, "list": listing}


def _fill_mlflow(path: Path, experiment: str) -> None:
    """Ten thousand runs, straight into MLflow's tables: by its API that takes many minutes."""
    names = [uuid.uuid4().hex for _ in range(RUNS)]
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO runs (run_uuid, name, status, start_time, end_time, lifecycle_stage, experiment_id, user_id,"
            " source_type, source_name, entry_point_name, source_version, artifact_uri)"
            " VALUES (?, 'x', 'FINISHED', ?, ?, 'active', ?, 'me', 'LOCAL', 't.py', '', '', 'file:///none')",
            [(name, number, number + 1, int(experiment)) for number, name in enumerate(names)],
        )
        connection.executemany(
            "INSERT INTO params (key, value, run_uuid) VALUES (?, ?, ?)",
            [(f"p{i}", str(number + i), name) for number, name in enumerate(names) for i in range(PARAMS)],
        )
        connection.executemany(
            "INSERT INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid) VALUES (?, 0.5, 0, 1, 0, ?)",
            [(f"m{i}", name) for name in names for i in range(METRICS)],
        )


def wandb_way(directory: Path) -> dict[str, Callable[[int], float]]:
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(directory))
    import wandb

    run = wandb.init(project="bench", dir=str(directory))

    def calls(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            run.log({"loss": 0.5})
        return time.perf_counter() - start

    return {"calls": calls}


def aim_way(directory: Path) -> dict[str, Callable[[int], float]]:
    import aim

    run = aim.Run(repo=str(directory), system_tracking_interval=None, log_system_params=False)

    def calls(count: int) -> float:
        start = time.perf_counter()
        for step in range(count):
            run.track(0.5, name="loss", step=step)
        return time.perf_counter() - start

    return {"calls": calls}


WAYS = {"stoker": stoker_way, "mlflow": mlflow_way, "wandb": wandb_way, "aim": aim_way}

if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    # Whatever a library prints must not be taken for an answer.
    os.dup2(2, 1)
    jobs = WAYS[sys.argv[1]](Path(sys.argv[2]))
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        name, amount = line.split()
        print(jobs[name](int(amount)), file=answers, flush=True)
    os._exit(0)
