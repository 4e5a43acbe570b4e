"""Runs go to a real MLflow server and come back, by its REST API, from its database and from its directory."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from stoker.tracking.store import queries
from stoker.tracking.store.address import Address, parse
from stoker.tracking.store.exporting import mlflow as exporting
from stoker.tracking.store.importing import mlflow as importing
from stoker.tracking.store.importing.imported_run import ImportedRun, import_runs
from stoker.tracking.store.tracking import TrackedRun
from stoker.tracking.store.writer import StoreWriter
from tests.support import ROOT, wait_until
from tests.tracking.store.conftest import flush

PYTHON = ROOT / ".venv-peers" / "bin" / "python"
pytestmark = pytest.mark.skipif(not PYTHON.exists(), reason="no MLflow: `make mlflow` installs it")
LOGGED = [0.5, math.nan, math.inf, -math.inf, 0.1]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The URL of a server, and the database behind it."""
    directory = tmp_path_factory.mktemp("mlflow")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    command = [str(PYTHON), "-m", "mlflow", "server", "--port", str(port), "--workers", "1"]
    command += ["--backend-store-uri", f"sqlite:///{directory / 'mlflow.db'}"]
    process = subprocess.Popen(
        command,
        cwd=directory,
        # The processes of its jobs are not needed here.
        env={**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None
        try:
            return bool(urllib.request.urlopen(f"{url}/health", timeout=5).status == 200)
        except (urllib.error.URLError, OSError):
            return False

    try:
        wait_until(answers)
        yield url, directory / "mlflow.db"
    finally:
        # A server that has ended by itself is what the assertion above speaks of.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        process.wait()


@pytest.fixture
def run(tmp_path: Path, own_writers: dict[Address, StoreWriter]) -> tuple[Address, str]:
    store = parse(f"sqlite:///{tmp_path / 'stoker.db'}")
    with TrackedRun("études", {"rate": 0.1, "layers": [1, 2]}, store=store, kind="track") as made:
        for step, value in enumerate(LOGGED):
            made.log(step, {"train/loss": value})
        for step in range(1500):
            made.log(step, many=float(step))
        made.log(0, {"odd*name": 1})
    flush()
    return store, made.id


def check(found: list[ImportedRun]) -> None:
    (one,) = [run for run in found if run.columns["name"] == "études"]
    assert one.columns["state"] == "finished"
    assert one.columns["parameters"] == {"rate": "0.1", "layers": "[1, 2]", "experiment": "from stoker"}
    assert repr([value for _, _, value in one.series["train/loss"]]) == repr(LOGGED)
    assert [step for step, _, _ in one.series["many"]] == list(range(1500))
    assert sorted(one.series) == ["many", "odd_name", "train/loss"]


@pytest.mark.slow
def test_a_run_goes_there_and_back(
    server: tuple[str, Path], run: tuple[Address, str], tmp_path: Path
) -> None:
    (url, database), (store, name) = server, run
    with queries.open_reader(store) as reader:
        exporting.export(reader, reader.runs(name), url, "from stoker")
    check(list(importing.read_server(url)))
    check(list(importing.read_database(f"sqlite:///{database}")))
    other = parse(f"sqlite:///{tmp_path / 'other.db'}")
    assert [fresh for _, fresh in import_runs(other, importing.read_server(url))] == [True]
    assert [fresh for _, fresh in import_runs(other, importing.read_database(f"sqlite:///{database}"))] == [
        False
    ]
    with queries.open_reader(other) as reader:
        (row,) = reader.runs()
        assert repr([value for _, _, value in reader.points(row.id, "train/loss")]) == repr(LOGGED)


def test_a_directory_of_mlruns_is_read(tmp_path: Path) -> None:
    script = """
import mlflow
mlflow.set_experiment("files")
with mlflow.start_run(run_name="one"):
    mlflow.log_params({"rate": 0.1})
    for step, value in enumerate([0.5, float("nan"), 0.25]):
        mlflow.log_metric("train/loss", value, step=step)
"""
    environment = {
        **os.environ,
        "MLFLOW_TRACKING_URI": (tmp_path / "mlruns").as_uri(),
        "MLFLOW_ALLOW_FILE_STORE": "true",
    }
    subprocess.run(
        [str(PYTHON), "-c", script], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    (one,) = importing.read_directory(tmp_path / "mlruns")
    assert (one.columns["name"], one.columns["state"]) == ("one", "finished")
    assert one.columns["parameters"] == {"rate": "0.1", "experiment": "files"}
    assert (
        repr([(step, value) for step, _, value in one.series["train/loss"]])
        == "[(0, 0.5), (1, nan), (2, 0.25)]"
    )


def test_what_is_not_a_database_of_mlflows_is_one_line(tmp_path: Path) -> None:
    from stoker.errors import UsageError

    (tmp_path / "other.db").write_text("")
    with pytest.raises(UsageError, match="is not an MLflow database"):
        list(importing.read_database(f"sqlite:///{tmp_path / 'other.db'}"))
