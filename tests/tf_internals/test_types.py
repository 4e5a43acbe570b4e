"""The names of types can be used before the program has imported a library."""

from __future__ import annotations

import subprocess
import sys


def test_types_import_no_library() -> None:
    program = (
        "import sys, stoker.tf_internals.types; print({'tensorflow', 'keras', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
