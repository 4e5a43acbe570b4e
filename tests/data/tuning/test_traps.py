"""Whatever the tuner changes comes out equal, and what it could not prove it leaves."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.data.tuning import comparing, effects, stages
from stoker.data.tuning.rebuilding import CannotRebuild, make_comparable
from tests.data.tuning import traps
from tests.data.tuning.judging import changed, made

# Traced functions differ, and TensorFlow says so at length.
pytestmark = pytest.mark.filterwarnings("ignore")


# What they give depends on what they gave before.
NEVER_THE_SAME = {"a_generator_that_differs_each_time", "a_generator_and_python_between"}


def repeats_itself(ds: object) -> bool:
    all_effects = [
        effects.find_effects(f) for stage in stages.list_stages(ds) for f in stages.functions(stage)
    ]
    return not any(found.unseeded for found in all_effects)


@pytest.mark.slow
@pytest.mark.parametrize("name", traps.TRAPS)
def test_equal_or_left_alone(name: str, tmp_path: Path) -> None:
    build, expected = traps.TRAPS[name]
    ds = build(tmp_path)
    tuned, report = changed(ds)
    assert made(report) == expected, report.left
    assert tuned is ds or report.changes
    assert tuned.element_spec == ds.element_spec
    assert int(tuned.cardinality()) == int(ds.cardinality())
    if tuned is ds or name in NEVER_THE_SAME or not repeats_itself(ds):
        return
    try:
        pair = make_comparable(ds), make_comparable(tuned)
    except CannotRebuild:
        pair = ds, tuned
    endless = int(ds.cardinality()) == -1
    assert comparing.difference(*pair, 2 * traps.ROWS, epochs=1 if endless else 2) is None


def test_there_are_enough() -> None:
    assert len(traps.TRAPS) >= 40
