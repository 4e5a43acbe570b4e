"""Options that several commands share."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from stoker.cli import main
from stoker.cli._options import add_json, add_program, add_store, read_program, read_store, read_store_option
from stoker.errors import UsageError


def test_an_action_does_not_undo_what_was_said_before_it() -> None:
    parser = argparse.ArgumentParser()
    add_json(parser)
    add_store(parser)
    action = parser.add_subparsers(dest="action").add_parser("show")
    add_json(action, inherits=True)
    add_store(action)
    args = parser.parse_args(["--json", "--store", "sqlite:////a.db", "show"])
    assert args.json is True
    assert read_store_option(args) == "sqlite:////a.db"
    args = parser.parse_args(["show"])
    assert args.json is False
    assert read_store_option(args) is None


def test_a_command_that_needs_a_store_refuses_none() -> None:
    with pytest.raises(UsageError, match="the store is switched off"):
        read_store(argparse.Namespace(store="off"))


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("absent/out.csv", "cannot write absent/out.csv: there is no directory absent; make it first"),
        (".", "cannot write .: it is a directory; name a file in it"),
        ("out.xls", "out.xls: use a name that ends in .csv, .tsv, .jsonl, .parquet"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    # There is no bundle either, which would be said next.
    assert main(["predict", "bundle", "rows.csv", "-o", file]) == 2
    assert capsys.readouterr().err == f"stoker: {why}\n"


def test_a_program_that_cannot_be_written_is_refused_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    assert main(["train", "table", "rows.csv", "--target", "y", "--eject", "absent/mine.py"]) == 2
    assert "cannot write absent/mine.py: there is no directory absent" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "name", "arguments", "is_module"),
    [
        (["train.py", "--epochs", "3"], "train.py", ["--epochs", "3"], False),
        (["-m", "package.module", "-m"], "package.module", ["-m"], True),
    ],
)
def test_what_follows_the_program_is_its_own(
    words: list[str], name: str, arguments: list[str], is_module: bool
) -> None:
    parser = argparse.ArgumentParser()
    add_program(parser)
    assert read_program(parser.parse_args(words), "stoker run train.py") == (name, arguments, is_module)


def test_without_a_program_the_line_shows_an_example() -> None:
    parser = argparse.ArgumentParser()
    add_program(parser)
    with pytest.raises(UsageError, match=r"^no program given: stoker run train\.py$"):
        read_program(parser.parse_args([]), "stoker run train.py")
