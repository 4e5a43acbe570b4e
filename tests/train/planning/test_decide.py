"""Whether XLA is taken: trials on a machine that does other things too must not speak for a slower candidate."""

from __future__ import annotations

import pytest

from stoker.train.planning.decide import by_times

STEPS = 100_000
COMPILE_S = 2.0


@pytest.mark.parametrize(
    ("none", "loop", "chosen"),
    [
        pytest.param([2e-4, 2e-4, 2e-4], [1e-4, 1e-4, 1e-4], "loop", id="clearly faster"),
        pytest.param([2e-4, 2e-4, 9e-4], [1e-4, 8e-4, 1e-4], "loop", id="one disturbed trial each"),
        pytest.param([1e-4, 9e-4, 8e-4], [1.6e-4, 1.6e-4, 1.6e-4], "none", id="plain was disturbed twice"),
        pytest.param([9e-4, 9e-4, 8e-4], [7e-4, 9.5e-4, 9.5e-4], "none", id="plain had one lucky rival"),
        pytest.param([1.05e-4] * 3, [1e-4] * 3, "none", id="a gain within the noise"),
        pytest.param([6e-3] * 3, [1e-2] * 3, "none", id="slower"),
    ],
)
def test_the_best_and_the_median_must_agree(none: list[float], loop: list[float], chosen: str) -> None:
    assert by_times(none, loop, STEPS, COMPILE_S)[0] == chosen


def test_what_is_saved_must_repay_compiling() -> None:
    assert by_times([2e-4] * 3, [1e-4] * 3, 10_000, COMPILE_S) == (
        "none",
        "XLA is 2.0x as fast, which saves less than compiling takes",
    )
