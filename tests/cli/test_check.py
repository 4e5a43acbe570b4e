"""`stoker check` as people run it: formats, selection, configuration, exit codes, prices."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from stoker.cli import main

BAD = """import tensorflow as tf

for x in dataset:
    loss = tf.reduce_sum(model(x))
    print(loss.numpy())
"""
WARNING = "import tensorflow as tf\nds = tf.data.TFRecordDataset(f).map(parse).prefetch(1)\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    (tmp_path / "train.py").write_text(BAD, encoding="utf-8")
    return tmp_path


def test_exit_codes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "train.py"]) == 1
    (project / "warn.py").write_text(WARNING, encoding="utf-8")
    assert main(["check", "warn.py"]) == 0
    assert main(["check", "--fail-on", "warning", "warn.py"]) == 1
    (project / "clean.py").write_text("x = 1\n", encoding="utf-8")
    assert main(["check", "clean.py"]) == 0
    assert main(["check", "missing.py"]) == 2
    assert "no such file or directory: missing.py" in capsys.readouterr().err
    (project / "broken.py").write_text("def (:\n", encoding="utf-8")
    assert main(["check", "."]) == 2
    captured = capsys.readouterr()
    assert "train.py:5:" in captured.out
    assert captured.err.count("does not parse") == 1


def test_json_carries_the_contract(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "fit.py").write_text(
        "import tensorflow as tf\nds = tf.data.Dataset.range(9).batch(3)\nmodel.fit(ds)\n", encoding="utf-8"
    )
    main(["check", "--format", "json", "."])
    by_kind = {item["kind"]: item for item in json.loads(capsys.readouterr().out)}
    sync, prefetch = by_kind["sync-in-loop"], by_kind["missing-prefetch"]
    assert (sync["code"], sync["file"], sync["line"], sync["column"]) == ("STK101", "train.py", 5, 11)
    assert (sync["end_line"], sync["severity"], sync["fix"]) == (5, "error", None)
    assert sync["message"]
    assert prefetch["fix"]["safety"] == "safe"
    (edit,) = prefetch["fix"]["edits"]
    assert (edit["line"], edit["text"]) == (2, ".prefetch(tf.data.AUTOTUNE)")


def test_stdin(project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(BAD.encode())))
    assert main(["check", "-"]) == 1
    assert capsys.readouterr().out.startswith("-:5:")


def test_text_shows_the_line_and_the_remedy(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "train.py"])
    out = capsys.readouterr().out
    assert "5 |     print(loss.numpy())" in out
    assert "  |           ^^^^^^^^^^^^" in out
    assert "read them every N steps" in out


def test_github_and_sarif(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--format", "github", "train.py"])
    line = capsys.readouterr().out
    assert line.startswith("::error title=stoker STK101,file=train.py,line=5,col=11,endLine=5::")
    main(["check", "--format", "sarif", "train.py"])
    run = json.loads(capsys.readouterr().out)["runs"][0]
    assert run["results"][0]["ruleId"] == "STK101"
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} >= {"STK101", "STK505"}


def test_annotations_have_a_level_a_price_and_escaped_names(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "100%, new.py").write_text(WARNING, encoding="utf-8")
    cells = [{"cell_type": "code", "source": BAD}]
    (project / "nb.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    _save_run(project, {"what_if": {"speedup": 3.14, "low": 3.0, "high": 3.3}})
    main(["check", "--format", "github", "."])
    first, notebook, error = capsys.readouterr().out.splitlines()
    assert first.startswith("::warning title=stoker STK302,file=100%25%2C new.py,line=2,")
    # A line of a cell is not a line of the file.
    assert notebook.startswith("::error title=stoker STK101,file=nb.ipynb::nb.ipynb:cell 1:5:11: STK101")
    assert error.startswith("::error title=stoker STK101,file=train.py,line=5,")
    assert error.endswith("(3.1x faster without it, measured)")
    main(["check", "--format", "sarif", "."])
    results = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    by_file = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]: r for r in results}
    assert "region" not in by_file["nb.ipynb"]["locations"][0]["physicalLocation"]
    assert by_file["nb.ipynb"]["message"]["text"].startswith("cell 1, line 5: ")
    assert by_file["train.py"]["locations"][0]["physicalLocation"]["region"]["startLine"] == 5
    assert by_file["train.py"]["message"]["text"].endswith("(3.1x faster without it, measured)")


def test_the_workflow_in_the_docs_runs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
    shown = page.partition("### GitHub annotations")[2].partition("Run it at the top")[0]
    snippet = shown[shown.index("    name:") :]
    yaml = pytest.importorskip("yaml")
    steps = yaml.safe_load(textwrap.dedent(snippet))["jobs"]["check"]["steps"]
    command = steps[-1]["run"].split()
    assert command[0] == "stoker"
    assert main(command[1:]) == 1
    assert capsys.readouterr().out.startswith("::error ")


def test_statistics(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--statistics", "."])
    assert capsys.readouterr().out == "1  STK101  [ ]  sync-in-loop\n"


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--select", "STK3"], 0),
        (["--select", "sync-in-loop"], 1),
        (["--ignore", "STK101"], 0),
        (["--select", "STK9"], 2),
        (["--ignore", "no-such-kind"], 2),
    ],
)
def test_selection(project: Path, flags: list[str], code: int) -> None:
    assert main(["check", *flags, "train.py"]) == code


@pytest.mark.parametrize(
    ("section", "code"),
    [
        ('ignore = ["STK101"]', 0),
        ('select = ["STK2"]', 0),
        ('exclude = ["train.py"]', 0),
        ('per-file-ignores = {"tr*.py" = ["sync-in-loop"]}', 0),
        ('per-file-ignores = {"other.py" = ["sync-in-loop"]}', 1),
        ('fail-on = "fatal"', 2),
        ('ignore = ["nothing"]', 2),
        ("colour = true", 2),
        ("ignore = [", 2),
    ],
)
def test_configuration(project: Path, section: str, code: int) -> None:
    (project / "pyproject.toml").write_text(f"[tool.stoker]\n{section}\n", encoding="utf-8")
    assert main(["check", "train.py"]) == code


@pytest.mark.parametrize(
    ("price", "shown"),
    [
        ({"what_if": {"speedup": 3.14, "low": 3.0, "high": 3.3}}, "(3.1x faster without it, measured)"),
        (
            {"what_if": {"speedup": 3.14, "low": 3.0, "high": 3.3, "basis": "modelled"}},
            "(3.1x faster without it, modelled)",
        ),
        ({"lost_s": 0.5}, "(2.0x faster without it, measured)"),
        ({}, "at every step: Python waits for the device\n"),
        # The run was priced, and this line's price is unknown: the seconds lost are no second opinion.
        ({"lost_s": 0.5, "priced": True}, "at every step: Python waits for the device\n"),
    ],
)
def test_a_measured_price_is_shown(
    project: Path, capsys: pytest.CaptureFixture[str], price: dict[str, object], shown: str
) -> None:
    _save_run(project, price)
    main(["check", "train.py"])
    assert shown in capsys.readouterr().out


def _save_run(project: Path, price: dict[str, object]) -> None:
    """Write a record that knows this of line 5 of train.py, and a damaged one."""
    together = {"all": {"speedup": 1.0, "low": 1.0, "high": 1.0}, "order": [], "assumptions": []}
    finding = {
        "kind": "sync-in-loop",
        "code": "STK101",
        "file": "train.py",
        "line": 5,
        "title": "t",
        "remedy": "r",
        **price,
    }
    record = {
        "schema": 1,
        "id": "1",
        "program": "train.py",
        "argv": [],
        "exit_code": 0,
        "versions": {},
        "device": {},
        "wall_s": 1.0,
        "steps": 1,
        "steps_per_s": 1.0,
        "examples_per_s": None,
        "accounts": {},
        "findings": [finding],
        "what_if": together if price.get("priced") else None,
    }
    runs = project / ".stoker" / "runs"
    runs.mkdir(parents=True)
    (runs / "1.json").write_text(json.dumps(record), encoding="utf-8")
    (runs / "2.json").write_text("damaged", encoding="utf-8")


def test_one_file_is_checked_without_what_is_slow_to_import(project: Path) -> None:
    code = "import sys; from stoker.cli import main; main(['check', 'train.py']); print(sorted(sys.modules))"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'tensorflow'" not in modules
    assert "'rich'" not in modules
