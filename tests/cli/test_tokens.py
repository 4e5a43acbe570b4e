"""A server's token comes from a file or the environment; a bad one is refused in one line."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from stoker.cli import _tokens
from stoker.errors import UsageError


def given(*words: str) -> str | None:
    parser = argparse.ArgumentParser()
    _tokens.add_options(parser, "the token")
    return _tokens.read_token(parser.parse_args(words), "STOKER_SERVE_TOKEN")


def test_a_token_is_read_from_a_file_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "token"
    file.write_text("of-the-file-0123456\n")
    assert given() is None
    monkeypatch.setenv("STOKER_SERVE_TOKEN", "of-serve")
    assert given() == "of-serve"
    monkeypatch.setenv("STOKER_TOKEN", "of-all")
    assert given() == "of-all"
    assert given("--token-file", str(file)) == "of-the-file-0123456"
    assert given("--token", "typed") == "typed"


@pytest.mark.parametrize("content", [b"", b" \n", b"two words", b"two\nlines", b"\xff\xfe", b"x" * 5000])
def test_a_file_without_one_token_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(UsageError, match="token-file"):
        given("--token-file", str(file))


def test_a_missing_file_and_two_tokens_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        given("--token-file", str(tmp_path / "nothere"))
    with pytest.raises(UsageError, match="give one"):
        given("--token", "a", "--token-file", "b")
