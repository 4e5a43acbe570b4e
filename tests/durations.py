"""How long each test file takes, roughly: with several processes, the longest begin first.

`durations.txt` holds seconds and files. Write it anew, from a run that lists all durations, when files have changed
much:

    python -m pytest -n auto --durations=0 --durations-min=0.05 -vv > log; python -m tests.durations log
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

_FILE = Path(__file__).with_suffix(".txt")
_ROOT = Path(__file__).parent.parent
# Of a test in a file that is not listed.
_USUAL_S = 0.3
_LINE = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +(tests/[^:]+\.py)::", re.MULTILINE)


def sort(items: list[pytest.Item]) -> None:
    """Put the tests of the longest files first; within a file, the order stays."""
    files: dict[str, float] = defaultdict(float)
    for item in items:
        files[_name(item)] += _USUAL_S
    files |= {name: seconds for name, seconds in _read().items() if name in files}
    items.sort(key=lambda item: (-files[_name(item)], _name(item)))


def _name(item: pytest.Item) -> str:
    return item.path.relative_to(_ROOT).as_posix()


@cache
def _read() -> dict[str, float]:
    lines = (line.split() for line in _FILE.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def main(log: str) -> None:
    """Write `durations.txt` from what pytest printed."""
    files: dict[str, float] = defaultdict(float)
    for seconds, name in _LINE.findall(Path(log).read_text(encoding="utf-8")):
        files[name] += float(seconds)
    listed = sorted(files.items(), key=lambda pair: -pair[1])
    _FILE.write_text("".join(f"{seconds:.0f} {name}\n" for name, seconds in listed if seconds >= 1))


if __name__ == "__main__":
    main(sys.argv[1])
