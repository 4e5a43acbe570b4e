"""`stoker runs` and `stoker audit`, on a store in a file."""

from __future__ import annotations

import csv
import http.server
import io
import json
import math
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from stoker.cli import main
from stoker.tracking.store import record_files, writer
from stoker.tracking.store.address import Address
from stoker.tracking.store.event_files import Scalar, read, write
from stoker.tracking.store.tracking import TrackedRun, track
from tests.samples import sample_record

Stoker = Callable[..., str]


@pytest.fixture
def stoker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Stoker]:
    """A command, run in an empty directory with the default store; what it prints."""
    made: dict[Address, writer.StoreWriter] = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STOKER_STORE")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(writer, "_writers", made)

    def run(*words: str, code: int = 0) -> str:
        for one in made.values():
            one.flush()
        capsys.readouterr()
        got = main(words)
        printed = capsys.readouterr()
        assert got == code, printed
        return printed.out if code != 2 else printed.err

    yield run
    for one in made.values():
        one.close()


def kept(name: str, loss: float, **params: Any) -> TrackedRun:
    with track(name, params=params) as run:
        for step in range(3):
            run.log(step, loss=loss + 2 - step)
    return run


def test_runs_are_listed_filtered_and_sorted(stoker: Stoker) -> None:
    assert "no runs yet" in stoker("runs")
    bad, good = kept("bad", 0.5, rate=0.1, tag="x y"), kept("good", 0.25, rate=0.01)
    listed = stoker("runs")
    assert listed.index(good.id) < listed.index(bad.id)
    assert "loss" in listed.splitlines()[0]
    by_loss = json.loads(stoker("runs", "--sort", "loss", "--json"))
    assert [run["name"] for run in by_loss] == ["good", "bad"]
    assert by_loss[0]["metrics.loss"] == 0.25
    assert [run["name"] for run in json.loads(stoker("runs", "--where", "rate>=0.1", "--json"))] == ["bad"]
    assert [run["name"] for run in json.loads(stoker("runs", "--where", "tag ~ X", "--json"))] == ["bad"]
    assert json.loads(stoker("runs", "--where", "loss<0.3", "--where", "name=bad", "--json")) == []
    assert "no run matches" in stoker("runs", "--where", "loss > 9")
    table = list(csv.DictReader(io.StringIO(stoker("runs", "--csv", "--limit", "1"))))
    assert [(row["name"], row["params.rate"], row["metrics.loss"]) for row in table] == [
        ("good", "0.01", "0.25")
    ]
    assert "0.01" in stoker("runs", "--columns", "params.rate")
    assert "cannot read the condition 'loss <'" in stoker("runs", "--where", "loss <", code=2)
    assert stoker("runs", "--where", "name = ''", "--json").strip() == "[]"
    assert "no run has 'los' to sort by: did you mean 'loss'?" in stoker("runs", "--sort=-los", code=2)
    assert "no run has 'los': did you mean 'loss'?" in stoker("runs", "--where", "los < 1", code=2)
    assert "no run matches" in stoker("runs", "--where", "git_commit = x", "--where", "parent = y")


def test_columns_that_were_asked_for_are_whole_in_a_pipe(
    stoker: Stoker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with track(
        "a long name for a run", params={"learning_rate": 0.001, "optimizer": "adam with decay"}
    ) as run:
        run.log(0, loss=0.123456, validation_loss=0.654321)
    columns = ["params.learning_rate", "params.optimizer", "loss", "validation_loss", "steps_per_s"]
    head, row = stoker("runs", "--columns", ",".join(columns)).splitlines()
    assert [title for title in columns[:-1] if title not in head.split()] == []
    assert row.startswith(f"{run.id} ")
    assert "adam with decay" in row


@pytest.mark.parametrize("words", [["runs"], ["runs", "show"], ["audit"], ["ui"]])
def test_a_store_that_is_not_there_is_not_made(words: list[str], stoker: Stoker, tmp_path: Path) -> None:
    file = tmp_path / "missing" / "runs.db"
    assert f"there is no file {file}" in stoker(*words, "--store", f"sqlite:///{file}", code=2)
    assert not file.parent.exists()


def test_what_makes_no_sense_is_one_line(stoker: Stoker) -> None:
    assert "cannot read the condition 'loss'" in stoker("runs", "--where", "loss", code=2)
    assert "invalid store 'mysql://x'" in stoker("runs", "--store", "mysql://x", code=2)
    assert "no run with id 'zzz'" in stoker("runs", "show", "zzz", code=2)
    assert "no such file or directory: nothere" in stoker("runs", "import", "nothere", code=2)
    assert "name a destination" in stoker("runs", "export", code=2)
    assert "is the server running?" in stoker("runs", "export", "--mlflow", "http://127.0.0.1:1", code=2)


def test_a_run_without_a_ledger_is_named_where_a_ledger_is_needed(stoker: Stoker) -> None:
    run = kept("mine", 1.0)
    for words in (["compare", run.id, run.id], ["report", run.id], ["whatif", run.id]):
        said = stoker(*words, code=2)
        assert f"run {run.id} is of kind 'track' and has no ledger" in said
        assert f"`stoker runs show {run.id}`" in said
        assert "`stoker runs diff A B`" in said
    assert "no run with id 'zzz'" in stoker("compare", "zzz", run.id, code=2)


def test_a_run_is_shown(stoker: Stoker) -> None:
    run = kept("[bold]odd[/bold]", math.nan, rate=0.1)
    shown = stoker("runs", "show", run.id[:-1])
    assert "[bold]odd[/bold]" in shown
    assert "nan" in shown
    assert json.loads(stoker("runs", "show", "--json"))["series"]["loss"]["count"] == 3


def test_two_runs_are_compared(stoker: Stoker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for rate, text in ((0.1, "1\n"), (0.2, "2\n")):
        (tmp_path / "data.csv").write_text(text)
        with track("study", params={"rate": rate, "same": 1}) as run:
            run.uses(tmp_path / "data.csv")
            run.log(0, {"loss": rate * 10, "ledger/compute": rate})
        runs.append(run.id)
    found = json.loads(stoker("runs", "diff", *runs, "--json"))
    assert found["changed"]["parameters"] == [{"name": "rate", "a": 0.1, "b": 0.2}]
    assert [one["name"] for one in found["changed"]["data"]] == ["data.csv"]
    assert found["results"] == [{"name": "loss", "a": 1.0, "b": 2.0}]
    monkeypatch.setenv("COLUMNS", "60")
    shown = stoker("runs", "diff", *runs)
    assert "+100.0%" in shown
    assert "ledger/compute" not in shown
    assert shown.splitlines()[:2] == [f"A  {runs[0]}", f"B  {runs[1]}"]


def test_records_of_before_are_listed_and_imported_once(stoker: Stoker, tmp_path: Path) -> None:
    directory = tmp_path / ".stoker" / "runs"
    directory.mkdir(parents=True)
    record = sample_record(id="20260101-000000-aaaa")
    record_files.write(record, directory / f"{record.id}.json")
    (directory / "20260103-000000-cccc.json").write_text("{")
    assert record.id in stoker("runs")
    assert "1 run imported" in stoker("runs", "import")
    assert "0 runs imported" in stoker("runs", "import")
    assert stoker("runs").count(record.id) == 1
    shown = json.loads(stoker("runs", "show", record.id, "--json"))
    assert shown["ledger"] == record.accounts
    assert [one["kind"] for one in shown["findings"]] == [one.kind for one in record.findings]
    stoker("runs", "delete", record.id)
    assert not (directory / f"{record.id}.json").exists()
    assert record.id not in stoker("runs")
    assert "run deleted" in stoker("audit")
    assert "the audit is whole" in stoker("audit", "--verify")


def test_event_files_are_imported_once(stoker: Stoker, tmp_path: Path) -> None:
    for name in ("train", "validation"):
        scalars = [Scalar("loss", step, 1e9 + step, step / 4) for step in range(5)]
        write(tmp_path / "logs" / name / "events.out.tfevents.1.x", iter(scalars), started=1e9)
    assert "2 runs imported" in stoker("runs", "import", "logs")
    assert "0 runs imported" in stoker("runs", "import", "logs")
    runs = json.loads(stoker("runs", "--json", "--sort", "name"))
    assert [(run["name"], run["metrics.loss"], run["steps"]) for run in runs] == [
        ("train", 1.0, 4),
        ("validation", 1.0, 4),
    ]
    assert "the audit is whole" in stoker("audit", "--verify")


def test_runs_are_exported(stoker: Stoker, tmp_path: Path) -> None:
    run = kept("one", 0.5)
    stoker("runs", "export", run.id, "--tensorboard", "logs", "--table", "points.csv")
    stoker("runs", "export", "--table", "points.parquet")
    (events,) = (tmp_path / "logs").rglob("*tfevents*")
    assert [(one.step, one.value) for one in read(events)] == [(0, 2.5), (1, 1.5), (2, 0.5)]
    rows = list(csv.DictReader((tmp_path / "points.csv").open()))
    first = {name: rows[0][name] for name in ("run", "series", "step", "value")}
    assert first == {"run": run.id, "series": "loss", "step": "0", "value": "2.5"}
    assert pq.read_table(tmp_path / "points.parquet").column("value").to_pylist() == [2.5, 1.5, 0.5]
    assert "must end in" in stoker("runs", "export", "--table", "points.txt", code=2)


def test_an_edited_audit_is_an_exit_code(stoker: Stoker, tmp_path: Path) -> None:
    run = kept("one", 0.5)
    model = tmp_path / "model.bin"
    model.write_bytes(b"1")
    run = track("two")
    run.artifact(model)
    run.finish()
    assert "the audit is whole" in stoker("audit", "--verify")
    model.write_bytes(b"2")
    assert "it was replaced" in stoker("audit", "--verify", code=1)
    assert json.loads(stoker("audit", "--verify", "--json", code=1))["files"] == 1


def test_deleting_files_is_asked_first_or_needs_yes(
    stoker: Stoker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with track("one") as run:
        (tmp_path / "model").write_text("weights")
        run.artifact(tmp_path / "model")
    assert "add --yes" in stoker("runs", "delete", run.id, "--artifacts", code=2)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for answer, gone in (("", False), ("n\n", False), ("y\n", True)):
        monkeypatch.setattr("sys.stdin", Terminal(answer))
        monkeypatch.setattr("sys.stderr", asked := Terminal())
        said = stoker("runs", "delete", run.id, "--artifacts")
        assert f"Delete run {run.id} (one)?\n  {tmp_path / 'model'}\n[y/N] " in asked.getvalue()
        assert said.startswith("deleted" if gone else "kept")
        assert (tmp_path / "model").exists() is not gone


def test_a_store_is_verified_against_a_head_kept_elsewhere(stoker: Stoker, tmp_path: Path) -> None:
    kept("one", 0.5)
    head = tmp_path / "head.json"
    head.write_text(stoker("runs", "head"))
    kept("two", 0.5)
    assert "2 sealed runs" in stoker("runs", "verify", "--head", str(head))
    assert stoker("audit", "--head", str(head)) == stoker("runs", "verify", "--head", str(head))
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/head.json"
        assert json.loads(stoker("runs", "verify", "--head", url, "--json"))["problems"] == []
        server.shutdown()
    head.write_text(json.dumps({**json.loads(head.read_text()), "hash": "0" * 64}))
    assert "the chain was rebuilt" in stoker("runs", "verify", "--head", str(head), code=1)
    assert "cannot read a head" in stoker("runs", "verify", "--head", "nothere", code=2)


def test_the_speed_of_a_measured_run_stays_on_a_narrow_terminal(
    stoker: Stoker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    record = sample_record()
    record_files.write(record, record_files.path_of(record.id))
    head, row = stoker("runs").splitlines()
    assert head.endswith("steps/s")
    assert row.split()[-1] == "24.4"


def test_every_run_has_a_name_on_a_narrow_terminal(stoker: Stoker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with track("homes", kind="table recipe") as recipe:
        with track("a network with quite a long name indeed", kind="train") as network:
            for name in ("loss", "val_loss", "accuracy"):
                network.log(1, {name: 123.45678})
            network.change(steps_per_s=1234.5)
        recipe.log(0, {"test RMSE": 10130.4, "test R2": 0.98})
    record = sample_record()
    record_files.write(record, record_files.path_of(record.id))
    head, *lines = stoker("runs").splitlines()
    assert "name" in head.split()
    listed = "".join(line[26:].partition("  ")[0] for line in lines)
    assert "└ a network with quite a long name indeed".replace(" ", "") in listed.replace(" ", "")
    assert record.program in listed
    assert all(len(line.rstrip()) <= 80 for line in (head, *lines))
    (whole,) = [line for line in lines if "homes" in line]
    monkeypatch.setenv("COLUMNS", "200")
    (wide,) = [line for line in stoker("runs").splitlines() if "homes" in line]
    assert "RMSE 10130" in wide
    assert whole.startswith(recipe.id)
    assert lines.index(whole) < next(n for n, line in enumerate(lines) if line.startswith(network.id))
