"""Notebooks: `%load_ext stoker`, then `%stoker run train.py`, or `%%stoker [--experiments 60s]` on top of a cell.

The report is shown inline: as HTML where the front end draws it (Jupyter, Colab), as text elsewhere.
"""

from __future__ import annotations

import importlib.util
import inspect
import io
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Protocol

from rich.console import Console

from stoker.doctor.attach.sites import cell_number
from stoker.doctor.measure.experiment_options import experiment_seconds
from stoker.doctor.measure.run import MeasuredRun
from stoker.doctor.report import console
from stoker.errors import RecordError, StokerError, UsageError
from stoker.printing import print_answer, print_note
from stoker.records import Record
from stoker.tracking.store import record_files

_WIDTH = 110
_HTML = '<pre style="white-space:pre;overflow-x:auto;line-height:1.3;font-family:monospace">{code}</pre>'


class NotebookReport:
    """A record as a notebook shows it."""

    def __init__(self, record: Record, path: Path) -> None:
        self.record = record
        self._path = path

    def _repr_html_(self) -> str:
        return self._print().export_html(inline_styles=True, code_format=_HTML)

    def __repr__(self) -> str:
        return self._print().export_text()

    def _print(self) -> Console:
        """Return a console that has recorded the report."""
        recording = Console(
            record=True, file=io.StringIO(), width=_WIDTH, highlight=False, force_jupyter=False
        )
        recording.print(console.render(self.record, self._path, _WIDTH))
        return recording


class CellResult(Protocol):
    """The result that IPython returns for a cell that it ran."""

    success: bool


class Shell(Protocol):
    """The part of IPython's shell that the magics use."""

    execution_count: int

    def register_magic_function(self, func: object, magic_kind: str, magic_name: str) -> None: ...

    def run_cell(self, raw_cell: str) -> CellResult: ...


def load_ipython_extension(ipython: Shell) -> None:
    """Register the magics; IPython calls this for `%load_ext stoker`."""

    def stoker_magic(line: str, cell: str | None = None) -> None:
        try:
            report = _run_program(line) if cell is None else _run_cell(ipython, line, cell)
        except StokerError as error:
            print_note(str(error))
            return
        from IPython.display import display

        display(report)  # type: ignore[no-untyped-call]

    ipython.register_magic_function(stoker_magic, "line_cell", "stoker")


def _run_program(line: str) -> NotebookReport:
    """`%stoker run train.py --epochs 3`: run the command, and show the program's output as it arrives."""
    words = shlex.split(line)
    if not words or words[0] != "run" or len(words) < 2:
        raise UsageError("write `%stoker run train.py args...`, or `%%stoker` at the top of a cell")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "record.json"
        command = [sys.executable, "-m", "stoker", "run", "--quiet", "--json", str(path), *words[1:]]
        program = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        assert program.stdout is not None
        for output in program.stdout:
            print_answer(output, end="")
        code = program.wait()
        if not path.exists():
            raise RecordError(f"the program left no record; `stoker run` ended with code {code}")
        saved = record_files.read(path)
    return NotebookReport(saved, record_files.path_of(saved.id))


def _run_cell(ipython: Shell, line: str, cell: str) -> NotebookReport:
    """`%%stoker`: run the cell in this kernel, with all its variables, and measure it."""
    seconds = _experiment_seconds(line)
    if importlib.util.find_spec("tensorflow") is None:
        raise UsageError("TensorFlow is not installed in this kernel's environment")
    import tensorflow  # noqa: F401 - before measuring: importing it is not the cell's work

    record_files.prepare()
    run = MeasuredRun.here("cell")
    run.record_steps(seconds, announced=True, skip="interrupting the kernel")
    run.begin()
    count = ipython.execution_count
    try:
        # The inner cell gets the number of the cell around it, and the same lines: line 1 stands for that of the magic.
        ipython.execution_count = _current_cell() or count
        result = ipython.run_cell("# %%stoker\n" + cell)
    except BaseException:
        run.abandon()
        raise
    finally:
        ipython.execution_count = count
    saved = run.end(exit_code=0 if result.success else 1)
    run.keep(saved)
    return NotebookReport(saved, run.path)


def _experiment_seconds(line: str) -> float | None:
    """Parse what follows `%%stoker`: nothing, or `--experiments 60s`."""
    words = line.replace("=", " ").split()
    if not words:
        return None
    if len(words) != 2 or words[0] != "--experiments":
        raise UsageError("`%%stoker` runs the cell below it; it takes only `--experiments 60s`, or `off`")
    return experiment_seconds(words[1])


def _current_cell() -> int:
    """Return the number of the running cell; 0 if unknown."""
    frame = inspect.currentframe()
    while frame is not None:
        number = cell_number(frame.f_code.co_filename)
        if number:
            return int(number)
        frame = frame.f_back
    return 0
