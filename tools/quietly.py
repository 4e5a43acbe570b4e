"""Run a command and show its output without what TensorFlow prints about itself.

    python tools/quietly.py COMMAND ...

For `make demo`: `stoker run` shows everything, because its output is the user's program's.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from stoker.chatter import LEVEL, is_chatter


def main(command: list[str]) -> int:
    """Both streams go to stdout in the order they were written; the command's exit code is returned."""
    environment = {**os.environ}
    environment.setdefault(LEVEL, "2")
    if sys.stdout.isatty():
        # The command writes into a pipe, but a terminal shows it.
        environment |= {"FORCE_COLOR": "1", "COLUMNS": str(shutil.get_terminal_size().columns)}
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    for line in process.stdout:
        if not is_chatter(line):
            print(line, end="", flush=True)
    return process.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
