"""The options of `stoker launch`: what is refused, and what is written for a scheduler."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.launch.support import run_refused
from tests.support import run

yaml = pytest.importorskip("yaml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "x", "train.py"], "-n 'x': give a number of workers such as 4, or a range such as 2:8"),
        (["-n", "3:2", "train.py"], "-n '3:2': give a number of workers such as 4, or a range such as 2:8"),
        (["-n", "0", "train.py"], "-n '0': give a number of workers such as 4, or a range such as 2:8"),
        (["-nn", "2", "train.py"], "-n 'n': give a number of workers such as 4, or a range such as 2:8"),
        (["-n", "2"], "no program given: stoker launch -n 4 train.py"),
        (["-n", "2", "gone.py"], "no such file: gone.py"),
        (["--heartbeat", "soon", "train.py"], "--heartbeat 'soon': give a time such as 30s or 5m"),
        (["--max-restarts", "few", "train.py"], "--max-restarts 'few': give a whole number such as 3"),
        (["--hosts", "a,a", "train.py"], "--hosts names a more than once; for 2 workers there, write a:2"),
        (["--hosts", ",", "train.py"], "--hosts names no machine: give some, such as a,b or a:4,b:4"),
        (
            ["--hosts=-oProxyCommand=x", "train.py"],
            "--hosts: invalid machine '-oProxyCommand=x': "
            "give a name, or a name and a number of workers such as a:4",
        ),
        (
            ["--discover", "cat", "train.py"],
            "--discover needs a range of workers, such as -n 2:8",
        ),
        (
            ["--hosts", "a", "--discover", "cat", "train.py"],
            "--hosts and --discover both name the machines: give only one of them",
        ),
        (
            ["--scheduler", "ssh", "train.py"],
            "--scheduler ssh needs machines: give --hosts a,b or --discover COMMAND",
        ),
    ],
)
def test_a_wrong_request_gives_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    assert run_refused(tmp_path, *words) == (2, f"stoker: {said}\n")


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (b"import sys\nif rank = 1: pass\n", "run.py:2: SyntaxError: invalid syntax. Maybe you meant '=='"),
        (b"epoch 1: loss 0.5\n", "run.py:1: SyntaxError: "),
        (b"def run():\nstep()\n", "run.py:2: IndentationError: expected an indented block"),
        (b"print(1)\0", "run.py"),
    ],
)
def test_a_program_that_does_not_parse_starts_no_job(tmp_path: Path, program: bytes, said: str) -> None:
    (tmp_path / "run.py").write_bytes(program)
    code, stderr = run_refused(tmp_path, "-n", "2", "run.py")
    assert (code, stderr.count("\n")) == (2, 1)
    assert stderr.startswith(f"stoker: {said}")
    assert not (tmp_path / ".stoker").exists()


@pytest.mark.parametrize("option", ["--scheduler", "--engine"])
def test_an_unknown_scheduler_gives_one_line(tmp_path: Path, option: str) -> None:
    code, said = run_refused(tmp_path, option, "moon", "train.py")
    assert (code, said.count("\n")) == (2, 1)
    assert said.startswith("stoker: argument --scheduler/--engine: invalid choice: 'moon' (choose from ")


def test_the_old_name_of_scheduler_works_and_says_so(tmp_path: Path) -> None:
    words = ["--engine", "slurm", "-n", "2", "--write", "job.sbatch", "train.py"]
    note = "stoker: --engine is deprecated and will be removed in Stoker 0.4: use --scheduler\n"
    assert run_refused(tmp_path, *words) == (0, note)
    old = (tmp_path / "job.sbatch").read_text()
    words[0] = "--scheduler"
    assert run_refused(tmp_path, *words) == (0, "")
    assert (tmp_path / "job.sbatch").read_text() == old


@pytest.mark.parametrize("variable", ["STOKER_JOB", "TF_CONFIG"])
def test_in_a_pod_the_old_name_says_nothing(
    tmp_path: Path, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "{}")
    words = ["--engine", "slurm", "-n", "2", "--write", "job.sbatch", "train.py"]
    assert run_refused(tmp_path, *words) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--write", "x"], "--write does not work with local: use --scheduler slurm or kubernetes"),
        (
            ["--scheduler", "kubernetes", "--write", "x"],
            "--scheduler kubernetes needs a container image: --image registry/name:tag",
        ),
        (
            ["--scheduler", "kubernetes"],
            "--scheduler kubernetes runs inside a pod: write the manifest with --write job.yaml, "
            "then kubectl apply -f job.yaml",
        ),
        (
            ["--scheduler", "slurm", "-n", "2:4", "--write", "x"],
            "-n 2:4: a submitted job needs a fixed number of workers, such as -n 4",
        ),
        (
            ["--scheduler", "slurm", "--sbatch", "gpu", "--write", "x"],
            "--sbatch 'gpu': give an option of sbatch, such as --sbatch=--partition=gpu",
        ),
        (
            ["--scheduler", "kubernetes", "--image", "i", "--pod", "{", "--write", "x"],
            "--pod is not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
        ),
        (
            ["--scheduler", "kubernetes", "--image", "i", "--pod", '{"hostNetwrk": true}', "--write", "x"],
            "JobSet.spec.replicatedJobs[0].template.spec.template.spec has no field 'hostNetwrk': "
            "did you mean 'hostNetwork'?",
        ),
    ],
)
def test_what_cannot_be_written_gives_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    assert run_refused(tmp_path, *words, "train.py") == (2, f"stoker: {said}\n")
    assert not (tmp_path / "x").exists()


def test_the_command_writes_a_manifest(tmp_path: Path) -> None:
    pod = tmp_path / "pod.json"
    pod.write_text(json.dumps({"priorityClassName": "low"}))
    words = [
        "-n",
        "8",
        "--scheduler",
        "kubernetes",
        "--image",
        "i",
        "--pod",
        "pod.json",
        "--write",
        "job.yaml",
        "-m",
        "a.b",
    ]
    outcome = run([sys.executable, "-m", "stoker", "launch", *words], tmp_path)
    assert (outcome.code, outcome.stderr) == (0, "")
    made = yaml.safe_load((tmp_path / "job.yaml").read_text())
    spec = made["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert spec["priorityClassName"] == "low"
    assert spec["containers"][0]["command"][-2:] == ["-m", "a.b"]
