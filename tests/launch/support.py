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

# What every program begins with: its place, and a word about it in a file of its own.
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
note("pid", os.getpid())
"""


def launch_command(*words: str) -> list[str]:
    return [sys.executable, "-m", "stoker", "launch", *words]


def refused(directory: Path, *words: str) -> tuple[int, str]:
    """A job that is not started: the exit code and what is said, of the command in this process."""
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
def launched(directory: Path, program: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A job that is running."""
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


def notes(directory: Path, word: str) -> dict[tuple[int, int], str]:
    """What the workers noted, by restart and rank."""
    found = {}
    for path in directory.glob(f"{word}-*-*"):
        if path.suffix != ".part":
            _, restart, rank = path.name.split("-")
            found[int(restart), int(rank)] = path.read_text(encoding="utf-8")
    return found


def wait_for(directory: Path, word: str, count: int, restart: int = 0) -> dict[tuple[int, int], str]:
    """What so many workers noted after so many restarts."""
    wait_until(lambda: sum(at == restart for at, _ in notes(directory, word)) >= count)
    return notes(directory, word)


def alive(process: int) -> bool:
    """Whether it is there, and no zombie."""
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
