"""Records that an earlier Stoker wrote, shortened: everything that can be done with a record can be with these."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from stoker.cli import main
from stoker.tracking.store import record_files

OLD = Path(__file__).parent / "old"
NAMES = sorted(path.stem for path in OLD.glob("*.json"))


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with these runs, which is the current directory."""
    directory = tmp_path / ".stoker" / "runs"
    shutil.copytree(OLD, directory)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    return directory


def as_json(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((OLD / f"{name}.json").read_text(encoding="utf-8"))
    return found


def kept(old: Any, new: Any) -> bool:
    """Whether all of `old` is in `new`; a later Stoker adds fields of its own."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(name in new and kept(old[name], new[name]) for name in old)
    if isinstance(old, list):
        return isinstance(new, list) and len(old) == len(new) and all(map(kept, old, new))
    return bool(old == new)


def test_there_are_some() -> None:
    assert NAMES == ["keras_fit", "killed", "pipeline", "software_gpu"]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_lost_by_reading_and_writing(name: str) -> None:
    record = record_files.read(OLD / f"{name}.json")
    assert kept(as_json(name), json.loads(json.dumps(record.to_json())))


@pytest.mark.parametrize("name", NAMES)
def test_every_command_takes_it(name: str, runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = as_json(name)
    assert main(["report", name]) == 0
    shown = capsys.readouterr().out
    assert data["program"] in shown
    assert data["findings"][0]["kind"] in shown
    assert main(["whatif", name, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["rows"][0]["speedup"] >= 1
    assert (
        main(["report", name, "--html", "page.html", "--trace", "trace.json", "--json", "record.json"]) == 0
    )
    assert data["findings"][0]["title"] in Path("page.html").read_text(encoding="utf-8")
    assert len(json.loads(Path("trace.json").read_text(encoding="utf-8"))["traceEvents"]) > 20
    assert kept(data, json.loads(Path("record.json").read_text(encoding="utf-8")))


def test_two_of_them_compare(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "pipeline", "keras_fit", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {finding["kind"] for finding in found["gone"]} <= {
        f["kind"] for f in as_json("pipeline")["findings"]
    }
    assert "extra" not in found["gone"][0]
    assert main(["compare", "pipeline", "keras_fit", "--html", "page.html"]) == 0


def test_the_killed_one_says_so(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "killed", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["exit_code"] == 137


def test_the_events_beside_one_are_in_its_trace(runs: Path) -> None:
    assert main(["report", "pipeline", "--trace", "trace.json"]) == 0
    events = json.loads(Path("trace.json").read_text(encoding="utf-8"))["traceEvents"]
    assert any(event.get("cat") == "tensorflow" for event in events)


def test_fields_of_a_later_stoker_survive(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = as_json("pipeline")
    data["carbon_g"] = 12
    data["device"]["sockets"] = 2
    data["tables"]["threads"] = [{"name": "main"}]
    data["tables"]["syncs"][0]["colour"] = "red"
    data["tables"]["windows"][0]["cooling_ns"] = 5
    data["timeline"]["windows"][0]["lanes"][0]["priority"] = 3
    data["what_if"]["order"][0]["risk"] = 0.1
    data["findings"][0]["detail"]["later"] = {"any": ["thing"]}
    data["findings"][0]["what_if"]["middle"] = 1.5
    (runs / "later.json").write_text(json.dumps(data), encoding="utf-8")
    assert main(["report", "later", "--json", "-"]) == 0
    assert kept(data, json.loads(capsys.readouterr().out))
    assert main(["report", "later"]) == 0
    assert main(["whatif", "later"]) == 0
