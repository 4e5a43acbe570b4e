"""No price beyond what a finding holds of a step, and what its repair is said to free: on programs made at random."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stoker.doctor.pricing import prices
from stoker.doctor.pricing import program as programs
from stoker.doctor.pricing.claims import share_out
from stoker.doctor.pricing.repairs import apply_repairs
from stoker.doctor.replay.simulation import Draw, seconds_per_step
from stoker.records import Finding, Record, TimelineSite, WhatIf, WindowSums
from tests.doctor.pricing.test_simulation import recorded
from tests.samples import sample_finding

LINES = (10, 20, 30)
STEPS = 8
# The kind that a span of an account at a line is a finding of.
AT_LINES = {
    "sync": "sync-in-loop",
    "transfer": "numpy-feed-in-loop",
    "checkpoint": "checkpoint-in-loop",
    "python": "host-callback-per-batch",
}
# Kinds whose spans bear no line of theirs, and the accounts their time is on.
LOOSE = {
    "eager-train-step": ("eager", "dispatch"),
    "predict-in-loop": ("eager", "dispatch", "trace", "input"),
    "retrace-shape": ("trace",),
    "input-starved": ("input",),
    "python-input-pipeline": ("input",),
    "missing-prefetch": ("input",),
}
# Repairs that free nothing beside themselves.
ALONE = ("sync-in-loop",)
ACCOUNTS = ("python", "dispatch", "graph", "eager", "sync", "transfer", "checkpoint", "trace", "input")

seconds = st.floats(1e-5, 5e-2)
span = st.tuples(st.sampled_from(ACCOUNTS), st.sampled_from([-1, 0, 1, 2]), seconds, st.floats(0, 1))


@st.composite
def records(draw: Callable[..., Any]) -> Record:
    """A record of a few steps, and findings whose seconds are what its spans say."""
    pattern = draw(st.lists(span, min_size=1, max_size=9))
    host: list[list[Any]] = []
    marks, now = [], 0.0
    for _ in range(STEPS):
        start = now
        for account, site, length, wait in pattern:
            held = length * draw(st.floats(0.5, 2.0))
            host.append([now, now + held, account, site, "", held * wait if account == "sync" else 0.0])
            now += held
        marks.append([start, now])
    accounts = {a: sum(s[1] - s[0] for s in host if s[2] == a) for a in ACCOUNTS}
    eager = accounts["eager"] + accounts["dispatch"]
    record = recorded(
        host,
        marks,
        seconds=now,
        steps=STEPS,
        accounts=accounts,
        asynchronous=draw(st.booleans()),
        eager_ops=100,
        eager_s=eager,
        eager_op_s=accounts["eager"],
    )
    assert record.timeline is not None
    timeline = dataclasses.replace(record.timeline, sites=[TimelineSite("train.py", line) for line in LINES])
    windows = WindowSums(
        graph_ns=100,
        graph_busy_ns=draw(st.integers(0, 100)),
        graph_input_ns=draw(st.integers(0, 20)),
        graph_quick_ns=draw(st.integers(0, 100)),
        eager_ns=100,
        eager_kernel_ns=draw(st.integers(0, 100)),
        eager_kernels=1,
        eager_floor_ns=draw(st.integers(0, 50)),
    )
    device = dataclasses.replace(record.device, busy=draw(st.none() | st.floats(0, 1)))
    tables = dataclasses.replace(record.tables, windows=[windows])
    found = findings(host) + [f for f in loose(accounts, draw) if draw(st.booleans())]
    return dataclasses.replace(record, tables=tables, timeline=timeline, findings=found, device=device)


def findings(host: list[list[Any]]) -> list[Finding]:
    """One for each account at each line."""
    made = []
    for account, kind in AT_LINES.items():
        for number, line in enumerate(LINES):
            own = sum(s[1] - s[0] for s in host if s[2] == account and s[3] == number)
            if own:
                made.append(sample_finding(kind=kind, line=line, seconds=own, lost_s=own, what_if=None))
    return made


def loose(accounts: dict[str, float], draw: Callable[..., Any]) -> list[Finding]:
    """Findings that hold some part of what lies on their accounts, at lines of their own."""
    made = []
    for line, (kind, names) in enumerate(LOOSE.items(), 100):
        own = sum(accounts[name] for name in names) * draw(st.floats(0.1, 1.0))
        if own:
            made.append(sample_finding(kind=kind, line=line, seconds=own, lost_s=own, what_if=None))
    return made


def allowed(price: WhatIf, share: float) -> float:
    """Amdahl's law, with the share as the record's spans have it and with what the price names."""
    # What is freed is named to four digits, which matters where next to nothing is left.
    left = 1 - share - sum(freed + 0.00005 for freed in (price.frees or {}).values())
    return 1 / left if left > 0 else float("inf")


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(records())
def test_no_price_is_above_what_the_ledger_can_carry(record: Record) -> None:
    total = record.tables.stepping[0].seconds
    done = prices.price_record(record)
    priced = [f for f in done.findings if f.what_if is not None]
    for finding in priced:
        price, share = finding.what_if, (finding.seconds or 0.0) / total
        assert price is not None
        assert price.share is not None
        assert price.share <= share + 1e-3
        assert 1 <= price.low <= price.speedup <= price.high
        # What a finding holds is measured, too, so the bounds of a measured price also hold the error of that.
        most = price.speedup if price.basis == "measured" else price.high
        assert most <= allowed(price, share) * 1.002 + 0.001
        if finding.kind in ALONE:
            assert not price.frees
    if priced:
        assert done.what_if is not None
        together = done.what_if.all
        assert together is not None
        everything = sum(f.seconds or 0.0 for f in priced) / total
        assert 1 <= together.speedup <= allowed(together, everything) * 1.002 + 0.001


def waits_alone() -> Record:
    """Steps in which the host does nothing but wait for a device of which nothing is known."""
    host = [[n / 32, (n + 1) / 32, "sync", -1, "", 1 / 32] for n in range(STEPS)]
    marks = [[n / 32, (n + 1) / 32] for n in range(STEPS)]
    return recorded(host, marks, seconds=0.25, steps=STEPS, accounts={"sync": 0.25}, asynchronous=True)


@settings(max_examples=150, deadline=None)
@given(records())
@example(waits_alone())
def test_an_unchanged_run_replays_to_what_it_took(record: Record) -> None:
    phase = record.tables.stepping[0]
    run = programs.of(record)
    assert run is not None
    measured = phase.seconds / phase.steps
    assert abs(seconds_per_step(run, Draw()) / measured - 1) < 0.005


@settings(max_examples=60, deadline=None)
@given(records())
def test_one_repair_leaves_the_pieces_of_another_line_alone(record: Record) -> None:
    """Reads of one line: whatever else is in the step takes as long as before."""
    run = programs.of(record)
    assert run is not None
    for finding in record.findings:
        if finding.kind != "sync-in-loop":
            continue
        after = apply_repairs(share_out(run, [finding]), [finding], Draw())
        own = (finding.file, finding.line)
        others = [[p for s in p_.steps for p in s if p.site not in (None, own)] for p_ in (run, after)]
        assert others[0] == others[1]
