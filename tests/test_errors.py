"""Addresses of buckets and servers are refused where only a path will do, in one line, and nothing is written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import stoker
from stoker import cli as commands
from stoker.errors import ArgumentError, check_local_path, describe_error, first_line

SAID = "s3:// is not supported here. Give a path on this machine: mount the storage, or copy the files."


@pytest.mark.parametrize(
    "text", ["s3://b/k", "gs://b", "hdfs://h/p", "az://c/b", "S3A://b", "my+own://x", "https://h/f"]
)
def test_an_address_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match="is not supported here") as error:
        check_local_path(text)
    assert str(error.value).startswith(f"{text}: ")


def test_an_address_that_went_through_a_path_is_refused() -> None:
    with pytest.raises(ArgumentError, match="s3:// is not supported here"):
        check_local_path(Path("s3://bucket/run"))


def test_a_file_address_is_told_what_to_leave_out() -> None:
    with pytest.raises(ArgumentError) as error:
        check_local_path("file:///data/a.csv")
    assert str(error.value) == "file:///data/a.csv: give the path alone, without file://"


@pytest.mark.parametrize(
    "path", ["a.csv", "/a/b", "~/c", "c:/d", "odd:/name", "a=b:c", "", Path("x"), None, False, 3]
)
def test_paths_pass(path: Any) -> None:
    check_local_path(path)


def _cache(address: str) -> None:
    Path("t.csv").write_text("a\n1\n")
    try:
        stoker.data.csv("t.csv", cache=address)
    finally:
        os.remove("t.csv")


def _track(way: str) -> Callable[[str], None]:
    def note(address: str) -> None:
        with stoker.track("run", store="off") as run:
            getattr(run, way)(address)

    return note


CALLS: dict[str, Callable[[str], Any]] = {
    "sql": lambda address: stoker.data.sql(address, "select 1"),
    "cache": _cache,
    "artifact": _track("artifact"),
    "uses": _track("uses"),
    "Watch": lambda address: stoker.Watch(log_dir=address),
}


@pytest.mark.tensorflow
@pytest.mark.parametrize("call", CALLS)
def test_calls_refuse_an_address(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError) as error:
        CALLS[call]("s3://bucket/run")
    assert str(error.value) == f"s3://bucket/run: {SAID}"
    assert os.listdir(tmp_path) == []


@pytest.mark.tensorflow
def test_a_cache_directory_of_the_environment_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", "s3://bucket/cache")
    Path("t.csv").write_text("a\n1\n")
    with pytest.raises(ArgumentError, match="s3:// is not supported here"):
        stoker.data.csv("t.csv")
    assert os.listdir(tmp_path) == ["t.csv"]


@pytest.mark.parametrize("option", ["--status", "--build", "--clean"])
def test_builds_of_the_software_gpu_go_into_no_address(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", "s3://bucket/cache")
    assert commands.main(["software-gpu", option]) == 2
    assert capsys.readouterr().err == f"stoker: s3:/bucket/cache/software-gpu: {SAID}\n"
    assert os.listdir(tmp_path) == []


LINES = [
    "train table . --target y --runs @",
    "train table . --target y --eject @",
    "export @ bundle",
    "export model.keras bundle --examples @",
    "bundle @",
    "serve bundle --tls-cert @ --tls-key key",
    "serve bundle --tls-cert cert --tls-key @",
    "package @ -o out",
    "package bundle -o @",
    "package bundle -o out --wheelhouse @",
    "package bundle -o out --requirements @",
    "package train.py -o out --include @",
    "run --html @ train.py",
    "run --json @ train.py",
    "report --html @",
    "report --json @",
    "report @",
    "compare a b --html @",
    "whatif @",
    "check @",
    "fix @",
    "explain --write @",
    "tune @:make",
    "runs export --tensorboard @",
    "runs export --table @",
    "launch --scheduler slurm --write @ train.py",
]


@pytest.mark.tensorflow
@pytest.mark.parametrize("line", LINES)
def test_commands_refuse_an_address(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = commands.main(line.replace("@", "s3://bucket/run").split())
    said = capsys.readouterr().err
    assert code == 2
    assert said.startswith("stoker: s3://bucket/run")
    assert said.endswith(f": {SAID}\n")
    assert said.count("\n") == 1
    assert os.listdir(tmp_path) == []


def test_programs_keep_their_own_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What follows the program is the program's: it may know what to do with an address."""
    monkeypatch.chdir(tmp_path)
    assert commands.main(["run", "missing.py", "--data", "s3://bucket/run"]) == 2
    assert "s3" not in capsys.readouterr().err


def test_an_error_without_a_message_is_described_by_its_class() -> None:
    assert first_line(ValueError(" \n")) == "ValueError"
    assert describe_error(ValueError()) == "ValueError"
    assert describe_error(ValueError("\nfirst\nsecond")) == "ValueError: first"
    assert first_line("") == ""
