"""The lines that TensorFlow prints about itself while it loads, and how Stoker's own commands hide them.

`TF_CPP_MIN_LOG_LEVEL` does not reach the lines that TensorFlow logs before its logging is set up, so those are
filtered from stderr. `stoker run` never does this: there, stderr belongs to the user's program.

Run as a program, this file is the filter. It imports nothing of Stoker, so it starts at once.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterator

LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_CHATTER = re.compile(
    r"WARNING: All log messages before absl::InitializeLog\(\) is called"
    r"|To enable the following instructions: .* rebuild TensorFlow"
    r"|(?:[IWE]\d{4} |\d{4}-\d\d-\d\d ).*"
    r"(?:oneDNN custom operations are|cpu_feature_guard\.cc|Unable to register cu|already registered"
    r"|Memory patch applied)"
)
# The filter ends when its input does. Only a process that TensorFlow started while it loaded could hold that open.
_LAST_LINES_S = 5.0


def is_chatter(line: str) -> bool:
    """Return whether this line is TensorFlow talking about itself, with nothing that the reader could act on."""
    return _CHATTER.match(line) is not None


@contextlib.contextmanager
def quiet_tensorflow() -> Iterator[None]:
    """Import TensorFlow in this block to keep its chatter off stderr. All other lines are shown.

    Users who set TF_CPP_MIN_LOG_LEVEL to 0 see everything. Garbage collection is off in the block, because repeatedly
    searching everything that is being loaded would take a fifth of the time.
    """
    shows_all = os.environ.setdefault(LEVEL, "3") == "0" or sys.stderr is None
    if "tensorflow" in sys.modules:
        yield
        return
    with _pause_collection(), contextlib.nullcontext() if shows_all else _filter_stderr():
        yield


@contextlib.contextmanager
def _pause_collection() -> Iterator[None]:
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextlib.contextmanager
def _filter_stderr() -> Iterator[None]:
    sys.stderr.flush()
    stderr = os.dup(2)
    # As a process of its own, the filter still delivers the last words of a TensorFlow that aborts.
    command = [sys.executable, "-I", "-S", "-X", "utf8", os.path.abspath(__file__)]
    lines = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=stderr, start_new_session=True)
    assert lines.stdin is not None
    os.dup2(lines.stdin.fileno(), 2)
    lines.stdin.close()
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)
        with contextlib.suppress(subprocess.TimeoutExpired):
            lines.wait(_LAST_LINES_S)


def main() -> None:
    """Copy stdin to stdout without the chatter, line by line."""
    sys.stdin.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    sys.stdout.reconfigure(errors="surrogateescape", line_buffering=True)  # type: ignore[union-attr]
    sys.stdout.writelines(line for line in sys.stdin if not is_chatter(line))


if __name__ == "__main__":
    main()
