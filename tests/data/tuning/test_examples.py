"""The example in the documentation is one the tuner can help."""

from __future__ import annotations

import runpy

from tests.data.tuning.judging import GENERATOR, MAP, changed, made
from tests.support import ROOT


def test_the_example_is_changed() -> None:
    module = runpy.run_path(str(ROOT / "examples" / "tuning" / "pipeline.py"))
    ds = module["make_dataset"]()
    _, report = changed(ds)
    assert made(report) == {GENERATOR, MAP}
