"""The order of findings, and the price of all repairs beside that of one."""

from __future__ import annotations

from stoker.doctor.pricing.ranking import raise_to_dearest, sort_for_repair
from stoker.records import RepairPlace, WhatIf
from tests.samples import sample_finding


def test_all_repairs_gain_at_least_what_the_best_of_them_gains() -> None:
    dear = sample_finding(what_if=WhatIf(8.3, 7.0, 9.0, basis="measured"))
    raised = raise_to_dearest(WhatIf(8.0, 6.0, 8.2, basis="modelled"), [sample_finding(what_if=None), dear])
    assert (raised.speedup, raised.low, raised.high) == (8.3, 6.0, 8.3)
    more = WhatIf(9.0, 6.0, 10.0, basis="measured")
    assert raise_to_dearest(more, [dear]) is more
    modelled = sample_finding(what_if=WhatIf(10.0, 2.0, 12.0, basis="modelled"))
    assert raise_to_dearest(more, [dear, modelled]) is more


def test_findings_stand_in_the_order_of_repair_and_then_by_price() -> None:
    findings = [
        sample_finding(line=line, what_if=WhatIf(price, 1.0, price))
        for line, price in ((1, 1.02), (2, 3.0), (3, 1.08), (4, 1.5))
    ]
    places = [
        RepairPlace("sync-in-loop", "train.py", line, alone=1.0, together=together)
        for line, together in ((2, 3.0), (4, 4.0), (1, 4.01), (3, 4.02))
    ]
    assert [finding.line for finding in sort_for_repair(findings, places)] == [2, 4, 3, 1]
