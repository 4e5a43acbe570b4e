"""Rank prices: which finding is listed first, and what all repairs gain at least."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from stoker.records import Finding, FindingKey, RepairPlace, WhatIf

# A repair that adds less than this to those before it ends their order.
_LEAST_GAIN = 0.02


def sort_for_repair(findings: list[Finding], places: list[RepairPlace]) -> list[Finding]:
    """Sort findings in the order of repair, as long as each repair adds something, then by price.

    Otherwise they keep their order, by cost. Findings that cost memory rather than time come last, by their bytes.
    """
    rank: dict[FindingKey, int] = {}
    before = 1.0
    for number, place in enumerate(places):
        if place.together < before * (1 + _LEAST_GAIN):
            break
        rank[place.key], before = number, place.together
    return sorted(
        findings,
        key=lambda f: (
            rank.get(f.key, len(rank)),
            -(f.what_if.speedup if f.what_if else 0.0),
            f.bytes_saved is not None,
            -(f.bytes_saved or 0),
        ),
    )


def raise_to_dearest(all_of_them: WhatIf, findings: Sequence[Finding]) -> WhatIf:
    """Raise the price of all repairs to that of the best single one, if that is higher.

    A measured price is not raised to a modelled one.
    """
    prices = [f.what_if for f in findings if f.what_if is not None]
    most = max((one.speedup for one in prices if all_of_them.basis in (one.basis, "modelled")), default=1.0)
    if most <= all_of_them.speedup:
        return all_of_them
    return dataclasses.replace(all_of_them, speedup=most, high=max(most, all_of_them.high))
