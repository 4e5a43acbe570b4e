"""What a release rests on: all files in the wheel, pinned workflows, news fragments, and names that only grow."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest

import stoker
from tests.support import ROOT, SRC

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_the_wheel_has_every_file_of_the_package() -> None:
    section = PYPROJECT.split("[tool.setuptools.package-data]\n", 1)[1].split("\n]\n", 1)[0]
    patterns = re.findall(r'^  "(.+)",$', section, re.MULTILINE)
    listed = {path for pattern in patterns for path in SRC.glob(pattern)}
    others = {path for path in SRC.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert others - listed == set()
    assert [pattern for pattern in patterns if not list(SRC.glob(pattern))] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_pin_every_action_by_its_commit(path: PurePosixPath) -> None:
    used = re.findall(r"uses: (\S+)(.*)", (ROOT / path).read_text(encoding="utf-8"))
    assert used
    for action, comment in used:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), f"{action} needs its version in a comment"


def test_every_news_fragment_has_a_kind() -> None:
    kinds = re.findall(r'^directory = "(\w+)"\nname', PYPROJECT, re.MULTILINE)
    assert "added" in kinds
    fragments = [path for path in (ROOT / "news").iterdir() if path.name != "README.md"]
    for path in fragments:
        assert re.fullmatch(rf"\+[\w-]+\.({'|'.join(kinds)})\.md", path.name), path.name
        assert path.read_text(encoding="utf-8").strip(), f"{path.name} is empty"


def names_and_flags() -> set[str]:
    """Public names, commands and their flags as they are now. tests/test_docs.py keeps docs/commands.md true."""
    found = {f"stoker.{name}" for name in stoker.__all__}
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        command = section.splitlines()[0]
        names = "\n".join(re.findall(r"^\| (`--?.*?`) \|", section, re.MULTILINE))
        flags = re.findall(r"`(?:-\w[^`]*, )?(--[a-z][\w-]*)", names)
        found |= {command, *(f"{command} {flag}" for flag in flags)}
    return found


def test_public_names_and_commands_only_grow() -> None:
    """A name leaves tests/contract.txt only after a version in which it warned (docs/versions.md)."""
    promised = set((ROOT / "tests" / "contract.txt").read_text(encoding="utf-8").split("\n")) - {""}
    assert promised - names_and_flags() == set()
    assert len(promised) > 200
