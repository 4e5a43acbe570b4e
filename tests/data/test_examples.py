"""Every example of a reader runs."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.support import ROOT

# The readers load it when they are used.
pytestmark = pytest.mark.tensorflow

EXAMPLES = sorted((ROOT / "examples" / "data").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.stem))
def test_the_example_runs(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


def test_each_reader_has_one() -> None:
    import stoker

    text = "".join(path.read_text() for path in EXAMPLES)
    for reader in set(stoker.data.__all__) - {"DataWarning"}:
        assert f"stoker.data.{reader}(" in text
