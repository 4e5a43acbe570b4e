"""The proof in a new process: it knows nothing of this one, so what it can do with a bundle, any process can.

python -m stoker.serve.export.child DIRECTORY
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import stoker
from stoker.serve.bundle import BundleError

_ANSWER = "stoker-proof "


def proven_elsewhere(directory: Path) -> dict[str, Any]:
    """Load a bundle in a new process and have it give its recorded answers.

    Returns:
        What it found: see `proof.prove`.

    Raises:
        BundleError: it does not.
    """
    # Nothing of this process' own path: what only it can import, another could not. Only Stoker itself must be found.
    home = str(Path(stoker.__file__).parents[1])
    code = f"import sys; sys.path[0] = {home!r}; from {__name__} import main; sys.exit(main())"
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory.resolve())],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith(_ANSWER):
            found: dict[str, Any] = json.loads(line.removeprefix(_ANSWER))
            if "fault" in found:
                raise BundleError(found["fault"])
            return found
    last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
    raise BundleError(f"a new process could not load the bundle (exit code {done.returncode}): {last}")


def main() -> int:
    """Prove, and say what came of it in one line."""
    from stoker.serve.proof import prove

    try:
        found: dict[str, Any] = prove(Path(sys.argv[1]))
    except BundleError as error:
        found = {"fault": str(error)}
    sys.stdout.write(f"{_ANSWER}{json.dumps(found)}\n")
    return 0
