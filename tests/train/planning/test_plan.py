"""A plan in words."""

from __future__ import annotations

from stoker.train.planning.plan import Plan


def test_the_line_says_what_xla_would_gain_beside_its_name() -> None:
    why = ("the update runs in one kernel", "XLA is only 0.09x as fast here; deciding took 4.4 s")
    assert Plan(feed="resident", jit="none", reasons=why).line() == (
        "data kept on the device, one call about every 0.3 s, no XLA "
        "(only 0.09x as fast here; deciding took 4.4 s; the update runs in one kernel)"
    )
    fast = Plan(feed="streamed", steps_per_call=8, jit="loop", reasons=("XLA is 1.7x as fast here",))
    assert fast.line() == "data streamed, 8 steps a call, XLA over the whole loop (1.7x as fast here)"


def test_the_line_of_a_plan_that_is_not_decided() -> None:
    assert Plan(steps_per_call=1).line() == "feed undecided, 1 step a call, XLA undecided"
