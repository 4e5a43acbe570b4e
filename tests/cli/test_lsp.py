"""`stoker lsp` without its extra."""

from __future__ import annotations

import subprocess
import sys


def test_a_missing_extra_is_one_line_that_names_it() -> None:
    code = (
        "import sys; sys.modules['pygls'] = sys.modules['lsprotocol'] = None;"
        "from stoker.cli import main; sys.exit(main(['lsp']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "stoker: stoker lsp needs lsprotocol: pip install 'stoker[lsp]'\n"
    assert done.stdout == ""
