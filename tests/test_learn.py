"""The lessons in docs/learn: every program is run as its page says, and prints what the page shows of it.

Figures are left out of the comparison (times and last digits are a machine's own), except in what `stoker check` says.
What a lesson claims about its figures is asserted below.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import ALL_CASES, HANGS_S, ROOT, run

nbformat = pytest.importorskip("nbformat")
TOOL = runpy.run_path(str(ROOT / "tools" / "make_notebooks.py"))
PAGES = TOOL["pages"]()
# A cell's commands are told to use colours.
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_FIGURE = re.compile(r"\d[\d,.]*(e[-+]?\d+)?")


@pytest.fixture
def _as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Programs run in this process: what they set for all of it is put back."""
    import keras

    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        yield
    keras.config.set_dtype_policy("float32")


def _here(program: str) -> str:
    """A program's output, with the last line of its traceback if it fails."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            runpy.run_path(program, run_name="__main__")
        except Exception as error:  # noqa: BLE001 - a lesson may show any
            printed.write(f"{type(error).__name__}: {error}\n")
    return printed.getvalue()


def _elsewhere(command: list[str]) -> str:
    done = run([sys.executable, *command], Path.cwd())
    return done.stdout + done.stderr


def _check(words: list[str]) -> str:
    """`stoker check`, in this process."""
    from stoker.cli import main

    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(printed):
        main(words)
    return printed.getvalue()


def output_of(words: str) -> str:
    """What a command of a lesson prints; in this process, where that is the same, for TensorFlow is loaded here."""
    verb, *rest = shlex.split(words)
    if verb == "stoker":
        return _check(rest) if rest[0] == "check" else _elsewhere(["-m", "stoker", *rest])
    # A program that starts others does not need TensorFlow itself.
    return _here(rest[0]) if "subprocess" not in Path(rest[0]).read_text() else _elsewhere(rest)


def _lines(text: str, exactly: bool) -> list[str]:
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line if exactly else _FIGURE.sub("#", line) for line in lines if line]


def _assert_shows(shown: tuple[str, ...], printed: str, exactly: bool) -> None:
    """All lines of the page are in the output, in order; `[...]` stands for what was cut."""
    rest = iter(_lines(printed, exactly))
    for line in _lines("\n".join(shown), exactly):
        assert line == "[...]" or line in rest, f"the page shows {line!r}; printed was:\n{printed}"


def _numbers(printed: str) -> list[float]:
    return [float(one) for one in re.findall(r"\d+\.\d+", printed)]


def _last(printed: str) -> float:
    return _numbers(printed)[-1]


Printed = dict[str, str]
CLAIMS: dict[str, Callable[[Printed], bool]] = {
    "01": lambda p: p["line_fixed.py"] == "y = 3.00 x + 2.00\n",
    "02": lambda p: (
        _last(p["step.py"].split("\nstoker  ")[0]) == pytest.approx(_last(p["step_fixed.py"]), rel=1e-3)
    ),
    "03": lambda p: _last(p["wine.py"]) < 0.5 < 0.9 < _last(p["wine_fixed.py"]),
    "04": lambda p: _last(p["rows.py"]) == pytest.approx(_last(p["rows_fixed.py"]), rel=1e-2),
    "05": lambda p: _numbers(p["loop.py"]) == pytest.approx(_numbers(p["loop_fixed.py"]), rel=1e-2),
    "06": lambda p: len(set(_numbers(p["resume.py"]))) == 2 and len(set(_numbers(p["resume_fixed.py"]))) == 1,
    "07": lambda p: _last(p["half_fixed.py"]) == pytest.approx(20),
    "08": lambda p: len(set(re.findall(r"loss ([\d.]+)", p["workers_fixed.py"]))) == 1,
    "09": lambda p: (
        min(_last(p["texts.py"].splitlines()[0]), _last(p["texts_fixed.py"].splitlines()[0])) > 0.8
    ),
    "10": lambda p: _last(p["digits.py"]) + 0.05 < _last(p["digits_fixed.py"]),
    "11": lambda p: (
        _last(p["keep.py"].split("\nstoker  ")[0]) == pytest.approx(_last(p["keep_fixed.py"]), rel=1e-2)
    ),
}


@pytest.mark.tensorflow
@pytest.mark.slow
@pytest.mark.usefixtures("_as_it_was")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_lesson_is_true(page: Path) -> None:
    printed: Printed = {}
    for part in TOOL["parts"](page.read_text(encoding="utf-8")):
        if isinstance(part, TOOL["Program"]):
            Path(part.name).write_text(part.text, encoding="utf-8")
        elif isinstance(part, TOOL["Command"]):
            found = output_of(part.words)
            exactly = part.words.startswith("stoker check")
            _assert_shows(part.output, found, exactly)
            if not exactly:
                printed[part.words.split()[-1]] = found
    assert CLAIMS[page.name[:2]](printed), printed


def test_there_are_eleven_lessons_and_a_claim_for_each() -> None:
    assert [page.name[:2] for page in PAGES] == sorted(CLAIMS)
    assert len(PAGES) == 11


def test_the_notebooks_say_what_the_pages_say() -> None:
    command = [sys.executable, "tools/make_notebooks.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.tensorflow
@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES if ALL_CASES else PAGES[:1], ids=lambda page: page.stem)
def test_a_notebook_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    file = TOOL["NOTEBOOKS"] / f"{page.stem}.ipynb"
    notebook = nbformat.read(file, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=HANGS_S, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    coloured = "".join(
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())
    )
    printed = _COLOUR.sub("", coloured)
    parts: list[Any] = TOOL["parts"](page.read_text(encoding="utf-8"))
    shown = [line for part in parts if isinstance(part, TOOL["Command"]) for line in part.output]
    _assert_shows(tuple(shown), printed, exactly=False)
