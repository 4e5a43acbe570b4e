"""The output of a job's workers: a log file for each worker, and a live view of all with the rank in front."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TextIO

from stoker.chatter import is_chatter
from stoker.logs import LOGGER

# Terminal colours that are readable on both black and white.
_COLOURS = (36, 33, 35, 32, 34, 31)


class JobView:
    """The log files of one job in `directory`, and its live view on two streams.

    Raises:
        OSError: the directory cannot be created.
    """

    def __init__(self, directory: Path, stdout: TextIO, stderr: TextIO, *, quiet: bool = False) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._streams = {"stdout": stdout, "stderr": stderr}
        self._quiet = quiet
        self._logs: dict[int, TextIO] = {}
        self._rank_width = 1

    def begin(self, ranks: list[int], restart: int) -> None:
        """Open the log files of workers that are about to start."""
        self._rank_width = len(str(max(ranks)))
        for rank in ranks:
            log = self._logs.get(rank)
            if log is None:
                # Line-buffered, so that users can follow the file.
                path = self.directory / f"worker-{rank}.log"
                log = self._logs[rank] = path.open("a", encoding="utf-8", buffering=1)
            if restart:
                log.write(f"--- restart {restart} ---\n")

    def show(self, rank: int, stream: str, lines: list[str]) -> None:
        """Write a worker's lines to its log file and, unless quiet, to the live view.

        The live view leaves out TensorFlow's messages about itself.
        """
        self._logs[rank].write("".join(f"{line}\n" for line in lines))
        if self._quiet:
            return
        target = self._streams[stream]
        prefix = self._format_prefix(rank, target)
        target.write("".join(f"{prefix} {line}\n" for line in lines if not is_chatter(line)))
        target.flush()

    def announce(self, line: str) -> None:
        """Log a line about the job itself."""
        LOGGER.info(line)

    def close(self) -> None:
        """Close the log files."""
        for log in self._logs.values():
            log.close()
        self._logs = {}

    def _format_prefix(self, rank: int, stream: TextIO) -> str:
        prefix = f"[{rank:>{self._rank_width}}]"
        if "NO_COLOR" in os.environ or not stream.isatty():
            return prefix
        return f"\033[{_COLOURS[rank % len(_COLOURS)]}m{prefix}\033[0m"
