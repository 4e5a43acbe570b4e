"""The test's promises, on a thousand simulated rollouts each."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stoker.errors import ArgumentError
from stoker.serve.rollout.evidence import AgreementTest, Conclusion

ROLLOUTS, REQUESTS = 1000, 5000


def conclude(shares: NDArray[Any]) -> Conclusion:
    """What a rollout concludes; adding requests together is the same as looking after each."""
    return AgreementTest().add(*shares.tolist())


def simulate(rate: float, seed: int, rollouts: int = ROLLOUTS) -> Counter[Conclusion]:
    random = np.random.default_rng(seed)
    return Counter(conclude(random.random(REQUESTS) < rate) for _ in range(rollouts))


@pytest.mark.slow
def test_an_equal_model_is_rarely_called_different() -> None:
    """Models that change just as many rows as may change are the hardest ones."""
    assert simulate(0.01, seed=1)[Conclusion.DIFFERENT] <= ROLLOUTS // 100
    assert simulate(0.0, seed=2, rollouts=20) == {Conclusion.SAME: 20}


@pytest.mark.slow
def test_a_drop_of_two_points_is_found() -> None:
    """Whoever is right in two points fewer of the rows has changed at least those; here, no others."""
    assert simulate(0.02, seed=3)[Conclusion.DIFFERENT] >= 95 * ROLLOUTS // 100


@pytest.mark.slow
def test_what_changes_too_much_is_rarely_called_the_same() -> None:
    assert simulate(0.0101, seed=4)[Conclusion.SAME] <= ROLLOUTS // 100


def test_rows_of_a_request_may_depend_on_each_other() -> None:
    """Of a hundred rows, all change or none: the mean is the same, and so is the promise."""
    random = np.random.default_rng(5)
    found = Counter(
        conclude(np.where(random.random(500) < 0.02, random.random(500), 0)) for _ in range(ROLLOUTS)
    )
    assert found[Conclusion.DIFFERENT] <= ROLLOUTS // 100


def test_adding_together_is_adding_one_by_one() -> None:
    random = np.random.default_rng(6)
    for rate in (0.0, 0.01, 0.02):
        shares = random.random(2000) < rate
        alone, together = AgreementTest(), AgreementTest()
        for share in shares:
            alone.add(float(share))
        for part in np.array_split(shares, 7):
            together.add(*part)
        assert alone.describe() == together.describe()


def test_it_says_what_it_found() -> None:
    test = AgreementTest(allowed=0.05)
    assert test.describe() == "not enough yet: 0 % of rows changed in 0 requests; 5 % may change"
    other = AgreementTest()
    other.add(*[1.0] * 3)
    assert "100 % of rows changed in 3 requests" in other.describe()
    while test.add(0.0) is Conclusion.OPEN:
        assert test.requests < REQUESTS
    assert test.requests == pytest.approx(np.log(4 / 0.01) / -np.log(0.95), abs=25)
    count = test.requests
    assert test.describe() == (
        f"same: fewer than 5 % of rows change (0 % of rows changed in {count} requests; "
        "wrong in at most 1 % of rollouts)"
    )
    assert test.add(1.0) is Conclusion.SAME  # the first conclusion stays
    for wrong in (0.0, 1.0, float("nan")):
        with pytest.raises(ArgumentError):
            AgreementTest(allowed=wrong)
