"""Each room imports only rooms below it: import-linter checks the contracts in pyproject.toml."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.support import ROOT, SRC


def test_no_room_imports_a_room_above_it() -> None:
    command = [
        sys.executable,
        "-c",
        "import sys; from importlinter.cli import lint_imports_command as c; sys.exit(c())",
    ]
    done = subprocess.run(
        [*command, "--no-cache", "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_part_is_in_the_contract_of_the_rooms() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    contract = text[text.index('name = "Rooms') :]
    listed = set(re.findall(r"stoker\.(\w+)", contract[: contract.index("\n]")]))
    parts = {path.stem for path in SRC.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert listed == parts - {"__init__"}
