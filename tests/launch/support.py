"""Jobs of tiny programs, started as a user would start them."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stoker.cli import main
from tests.support import Outcome, environment, run, wait_until, write_program

# What every program begins with: its place, and functions to leave notes in files and to listen at its port.
HEAD = """
import json, os, pathlib, signal, socket, sys, time
rank, size, restart = (int(os.environ["STOKER_" + name]) for name in ("RANK", "SIZE", "RESTART"))
cluster = json.loads(os.environ["TF_CONFIG"])
def note(word, text=""):
    path = pathlib.Path(f"{word}-{restart}-{rank}")
    path.with_suffix(".part").write_text(str(text))
    path.with_suffix(".part").rename(path)
def listen():
    door = socket.create_server(("", int(cluster["cluster"]["worker"][rank].rpartition(":")[2])))
    return door
if __name__ == "__main__": note("pid", os.getpid())
"""


def launch_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "stoker", "launch", *words]


def run_refused(directory: Path, *words: str) -> tuple[int, str]:
    """Run a command that is refused, in this process; return its exit code and what it printed to stderr."""
    (directory / "train.py").write_text("")
    said, before = io.StringIO(), os.getcwd()
    os.chdir(directory)
    try:
        with contextlib.redirect_stderr(said):
            code = main(["launch", *words])
    finally:
        os.chdir(before)
    return code, said.getvalue()


def launch(directory: Path, program: str, *words: str, arguments: tuple[str, ...] = ()) -> Outcome:
    """Run a job to its end."""
    write_program(directory, HEAD + program)
    return run(launch_command(*words, "train.py", *arguments), directory)


@contextmanager
def start_job(directory: Path, program: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start a job, and kill it at the end if it still runs."""
    write_program(directory, HEAD + program)
    process = subprocess.Popen(
        launch_command(*words, "train.py"),
        cwd=directory,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_notes(directory: Path, word: str) -> dict[tuple[int, int], str]:
    """Read what the workers noted, by restart and rank."""
    found = {}
    for path in directory.glob(f"{word}-*-*"):
        if path.suffix != ".part":
            _, restart, rank = path.name.split("-")
            found[int(restart), int(rank)] = path.read_text(encoding="utf-8")
    return found


def wait_for_notes(directory: Path, word: str, count: int, restart: int = 0) -> dict[tuple[int, int], str]:
    """Wait until `count` workers of this restart have noted it; return all notes."""
    wait_until(lambda: sum(at == restart for at, _ in read_notes(directory, word)) >= count)
    return read_notes(directory, word)


def is_alive(process: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def find_parent(process: int) -> int:
    """The parent of a process; 0 if there is no such process."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def find_children(process: int) -> set[int]:
    """The children of a process that are alive."""
    found = {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}
    return {one for one in found if find_parent(one) == process and is_alive(one)}
