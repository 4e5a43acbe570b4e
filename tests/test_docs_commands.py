"""Commands in the documentation: every verb, every option and every `make` target they name exists.

`tests/test_docs.py` keeps docs/commands.md true, which is where the options are looked up.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import stoker
from tests.support import ROOT
from tests.test_docs import PAGES, READ, shown, text_of
from tests.test_release import names_and_flags

KNOWN = names_and_flags()
VERBS = {name.split()[1] for name in KNOWN if name.startswith("stoker ")}
TARGETS = set(re.findall(r"^([a-z][\w-]*):", text_of(ROOT / "Makefile"), re.MULTILINE))
_INLINE = re.compile(r"`(?:\$ )?stoker ([a-z][^`]*)`")
_BLOCK = re.compile(r"^(?:\$ | {4,}(?:\$ )?)?stoker ([a-z-]+ .*)$", re.MULTILINE)
_MAKE = re.compile(r"(?:`| {4,})(?:\w+=\S+ )?make ([a-z][\w-]*)")


def commands_in(text: str) -> list[list[str]]:
    """The words after `stoker` of each command, without comments and without a program's own arguments."""
    commands = []
    for line in [*_INLINE.findall(text), *_BLOCK.findall(text)]:
        words = line.split(" #")[0].split()
        programs = [place for place, word in enumerate(words) if word.endswith(".py")]
        if words[0] in ("run", "launch", "fix", "memory") and programs:
            words = words[: programs[0] + 1]
        commands.append(words)
    return commands


@pytest.mark.parametrize("page", [*PAGES, *READ], ids=shown)
def test_a_page_names_only_commands_and_options_that_exist(page: Path) -> None:
    for verb, *words in commands_in(text_of(page)):
        assert verb in VERBS
        options = {option for word in words if (option := re.match(r"--[a-z][\w-]*", word))}
        assert {f"stoker {verb} {option[0]}" for option in options} <= KNOWN


@pytest.mark.parametrize("page", [*PAGES, *READ], ids=shown)
def test_a_page_names_only_make_targets_that_exist(page: Path) -> None:
    assert set(_MAKE.findall(text_of(page))) <= TARGETS


def test_commands_are_found() -> None:
    found = [command for page in [*PAGES, *READ] for command in commands_in(text_of(page))]
    assert len(found) > 300
    assert ["launch", "-n", "4", "train.py"] in found


def test_the_pre_commit_hooks_run_commands_that_exist() -> None:
    hooks = text_of(ROOT / ".pre-commit-hooks.yaml")
    entries = [line.split() for line in re.findall(r"^  entry: stoker (.+)$", hooks, re.MULTILINE)]
    assert [verb for verb, *_ in entries] == ["check", "fix"]
    assert {
        f"stoker {verb} {word}" for verb, *words in entries for word in words if word[:2] == "--"
    } <= KNOWN
    page = text_of(ROOT / "docs" / "check.md")
    assert f"rev: v{stoker.__version__}" in page
    assert set(re.findall(r"- id: ([\w-]+)", page)) <= set(
        re.findall(r"^- id: ([\w-]+)", hooks, re.MULTILINE)
    )
