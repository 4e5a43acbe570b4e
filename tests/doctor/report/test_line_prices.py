"""Which price of a saved run belongs to a finding, also when lines have moved since."""

from __future__ import annotations

import pytest

from stoker.doctor.check.rule import Problem
from stoker.doctor.report.line_prices import PriceList, PriceOfLine


def price(line: int, source: str, speedup: float = 2.0, kind: str = "sync-in-loop") -> PriceOfLine:
    return PriceOfLine("/train.py", line, kind, source, speedup, "measured", "run")


def problem(line: int, source: str) -> Problem:
    return Problem(
        "sync-in-loop", "STK101", "/train.py", line, 1, line, "message", "error", source=f"    {source}"
    )


@pytest.mark.parametrize(
    ("prices", "line", "source", "expected"),
    [
        ([price(5, "print(a)", 2.0)], 5, "print(a)", 2.0),
        # Old records do not say what the line was.
        ([price(5, "", 2.0)], 5, "print(a)", 2.0),
        ([price(5, "print(a)", 2.0)], 9, "print(a)", 2.0),
        ([price(5, "print(a)", 2.0), price(20, "print(a)", 3.0)], 22, "print(a)", 3.0),
        # The line is another one by now.
        ([price(5, "print(a)", 2.0)], 5, "print(b)", None),
        ([price(5, "print(b)", 2.0), price(4, "print(a)", 3.0)], 5, "print(a)", 3.0),
        ([price(5, "print(a)", 2.0, kind="predict-in-loop")], 5, "print(a)", None),
        # The latest run has the last word.
        ([price(5, "print(a)", 2.0), price(5, "print(a)", 4.0)], 5, "print(a)", 4.0),
    ],
)
def test_a_finding_gets_the_price_of_its_line(
    prices: list[PriceOfLine], line: int, source: str, expected: float | None
) -> None:
    found = PriceList(prices).find(problem(line, source))
    assert (None if found is None else found.speedup) == expected
