"""What a recipe learns about its data before it trains."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.recipes.data_checks import are_uneven


@pytest.mark.parametrize(
    ("counts", "uneven"),
    [((50, 50), False), ((40, 10), False), ((41, 10), True), ((41, 30, 10), True), ((400, 200, 100), False)],
)
def test_classes_are_uneven_if_one_is_more_than_four_times_as_frequent_as_another(
    counts: tuple[int, ...], uneven: bool
) -> None:
    assert are_uneven(np.repeat(np.arange(len(counts)), counts)) == uneven
