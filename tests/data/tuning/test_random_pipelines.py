"""Random pipelines: whatever the tuner changes, the elements stay the same, in two epochs."""

from __future__ import annotations

import pytest

from tests.data.tuning import random_pipelines
from tests.data.tuning.judging import changed
from tests.data.tuning.random_pipelines import TRANSFORMATIONS, Piece, build, draw_pieces, read_elements
from tests.support import ALL_CASES

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40 if ALL_CASES else 16))
def test_every_change_together_keeps_the_elements(seed: int) -> None:
    pieces = draw_pieces(seed)
    tuned, _ = changed(build(pieces))
    expected = build(pieces)
    for _epoch in range(2):
        assert read_elements(tuned) == read_elements(expected), pieces


def test_a_fault_is_made_shorter() -> None:
    pieces = [Piece("numbers", 1), *(Piece(name, 1) for name in ("add", "shuffle", "negate", "batch"))]
    fewer = random_pipelines.shrink(pieces, lambda some: any(one.name == "shuffle" for one in some))
    assert [one.name for one in fewer] == ["numbers", "shuffle"]


def test_there_are_fifty_transformations() -> None:
    assert len(TRANSFORMATIONS) >= 50
