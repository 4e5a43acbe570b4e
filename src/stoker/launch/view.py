"""What a job's workers print: a log file for each, and all of them together, the rank in front."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

# Of the terminal's colours, those that can be read on black and on white.
_COLOURS = (36, 33, 35, 32, 34, 31)


class View:
    """The log files of one job in `directory`, and its live view on two streams.

    Raises:
        OSError: the directory cannot be made.
    """

    def __init__(self, directory: Path, stdout: TextIO, stderr: TextIO, *, quiet: bool = False) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._streams = {"stdout": stdout, "stderr": stderr}
        self._quiet = quiet
        self._logs: dict[int, TextIO] = {}
        self._width = 1

    def begin(self, ranks: list[int], restart: int) -> None:
        """These workers are about to start."""
        self._width = len(str(max(ranks)))
        for rank in ranks:
            log = self._logs.get(rank)
            if log is None:
                # Line by line, so that whoever looks sees it.
                path = self.directory / f"worker-{rank}.log"
                log = self._logs[rank] = path.open("a", encoding="utf-8", buffering=1)
            if restart:
                log.write(f"--- restart {restart} ---\n")

    def show(self, rank: int, stream: str, lines: list[str]) -> None:
        """Lines of a worker."""
        self._logs[rank].write("".join(f"{line}\n" for line in lines))
        if self._quiet:
            return
        to = self._streams[stream]
        front = self._front(rank, to)
        to.write("".join(f"{front} {line}\n" for line in lines))
        to.flush()

    def tell(self, line: str) -> None:
        """A line about the job itself."""
        self._streams["stderr"].write(f"stoker: {line}\n")
        self._streams["stderr"].flush()

    def close(self) -> None:
        """No more lines."""
        for log in self._logs.values():
            log.close()
        self._logs = {}

    def _front(self, rank: int, stream: TextIO) -> str:
        front = f"[{rank:>{self._width}}]"
        if "NO_COLOR" in os.environ or not stream.isatty():
            return front
        return f"\033[{_COLOURS[rank % len(_COLOURS)]}m{front}\033[0m"
