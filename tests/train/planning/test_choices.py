"""Remembered choices: the first one holds, on any file system, and one that cannot be kept is none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stoker.train.planning import choices

XLA: choices.JitChoice = {"jit": "loop", "reason": "XLA is 3.0x as fast", "figures": {"none_us": 3.0}}
PLAIN: choices.JitChoice = {"jit": "none", "reason": "XLA is only 1.01x as fast", "figures": {}}


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert choices.can_remember()


def kept() -> list[str]:
    return sorted(path.name for path in choices.DIRECTORY.iterdir())


@pytest.mark.parametrize("links", [True, False])
def test_the_first_choice_holds(links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:

        def refuse(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        # As a file system without hard links answers.
        monkeypatch.setattr(os, "link", refuse)
    assert choices.remember("key", XLA) == XLA
    assert choices.remember("key", PLAIN) == XLA
    assert choices.recall("key") == XLA
    assert kept() == ["key.json"]


def test_a_damaged_choice_is_made_again() -> None:
    (choices.DIRECTORY / "key.json").write_text('{"jit": "lo')
    assert choices.recall("key") is None
    assert choices.remember("key", XLA) == XLA
    assert choices.recall("key") == XLA


def test_what_cannot_be_kept_is_not_chosen() -> None:
    (choices.DIRECTORY / "key.json").mkdir()
    choice = choices.remember("key", XLA)
    assert choice["jit"] == "none"
    assert "cannot be written (Is a directory)" in choice["reason"]
    assert kept() == ["key.json"]
