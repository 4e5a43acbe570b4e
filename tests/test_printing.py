"""One printer for the commands, one logger for the library: nothing else in the source writes to stdout or stderr."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.printing import print_answer, print_note
from tests.support import SRC, environment

# The printer, the logger's handler, and a filter for stderr that runs as a program of its own.
ALLOWED = {"printing.py", "logs.py", "chatter.py"}
# Programs as people write them.
PROGRAMS = ("doctor/stalls/cases/", "recipes/programs/")
STREAMS = {f"sys.{name}" for name in ("stdout", "stderr", "__stdout__", "__stderr__")}
WRITERS = {"write", "writelines", "buffer"}


def find_prints(source: str) -> list[int]:
    """The lines that print, or write to a standard stream."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if (isinstance(node, ast.Name) and node.id == "print")
        or (isinstance(node, ast.Attribute) and node.attr in WRITERS and ast.unparse(node.value) in STREAMS)
        or (isinstance(node, ast.Call) and ast.unparse(node.func) == "os.write" and is_standard(node.args[0]))
    ]


def is_standard(descriptor: ast.expr) -> bool:
    return isinstance(descriptor, ast.Constant) and descriptor.value in (1, 2)


def test_only_the_printer_prints() -> None:
    found = []
    for path in sorted(SRC.rglob("*.py")):
        name = path.relative_to(SRC).as_posix()
        if name not in ALLOWED and not name.startswith(PROGRAMS):
            found += [f"{name}:{line}" for line in find_prints(path.read_text(encoding="utf-8"))]
    assert found == [], "log to stoker.logs.LOGGER, or use stoker.printing in a command"


@pytest.mark.parametrize(
    "line",
    [
        "print('x')",
        "print('x', file=sys.stderr)",
        "show = print",
        "sys.stderr.write('x')",
        "sys.stdout.writelines(['x'])",
        "sys.__stderr__.write('x')",
        "sys.stdout.buffer.write(b'x')",
        "os.write(2, b'x')",
    ],
)
def test_every_way_to_print_is_found(line: str) -> None:
    assert find_prints(f"import os, sys\n{line}\n") == [2]


def test_answers_go_to_stdout_and_notes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    print_answer("1 row")
    print_answer("no line end", end="")
    print_note("slow")
    print_note("page: x.html", prefix="")
    assert capsys.readouterr() == ("1 row\nno line end", "stoker: slow\npage: x.html\n")


@pytest.mark.parametrize("closing", ["sys.stderr.close()", "sys.stderr = None"])
def test_a_note_without_a_stderr_is_no_error(tmp_path: Path, closing: str) -> None:
    program = f"import sys; {closing}; from stoker.printing import print_note; print_note('x')"
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment(), check=True)
