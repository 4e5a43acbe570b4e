"""The door into the program's process: `sitecustomize`, which Python imports before the program.

Stoker itself imports only `open_door` from here.

Why a child process and `sitecustomize`: Python itself starts the program, so `__main__`, `sys.argv`, tracebacks,
`multiprocessing`, exit codes and signals are native, and nothing is imitated. The parent survives however the program
dies (SIGKILL, `os._exit`, a segfault), and prints the ledger last.
"""

from __future__ import annotations

import os

_DIRECTORY = os.path.dirname(os.path.abspath(__file__))


def open_door(environment: dict[str, str]) -> None:
    """Make Python import our `sitecustomize` first. It starts what was asked for and removes its traces."""
    own = environment.get("PYTHONPATH")
    if own is not None:
        environment["STOKER_PYTHONPATH"] = own
    environment["PYTHONPATH"] = os.pathsep.join([_DIRECTORY, own] if own else [_DIRECTORY])
