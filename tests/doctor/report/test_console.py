"""The ledger on the terminal."""

from __future__ import annotations

import dataclasses
import io
from pathlib import Path

from rich.console import Console

from stoker.doctor.report import console, live
from stoker.records import Record, SteppingRow, WhatIf
from tests.samples import sample_finding, sample_record, sample_simulated_record


def drawn(record: Record, width: int = 100) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(
        console.render(record, Path(".stoker/runs/x.json"), width)
    )
    return stream.getvalue()


def words(record: Record) -> str:
    """The report without its line breaks."""
    return " ".join(drawn(record).split())


def test_the_report_has_what_people_need() -> None:
    text = words(sample_record())
    for part in (
        "train.py --epochs 3",
        "300 steps",
        "24.4 steps/s",
        "780 examples/s",
        "CPU 21% busy",
        "sync-in-loop train.py:42 in train",
        "print(loss.numpy())",
        "300 times",
        "4.90 s waiting, 0.10 s copying",
        "1.2 KiB",
        "→ Read every N steps.",
        ".stoker/runs/x.json",
    ):
        assert part in text


def test_accounts_are_longest_first_and_empty_ones_left_out() -> None:
    text = drawn(sample_record())
    assert text.index("sync ") < text.index("compute ") < text.index("startup ")
    assert "checkpoint" not in text
    assert "40.7%" in text


def test_quiet_when_nothing_is_wrong() -> None:
    assert "Nothing stalls this program." in drawn(sample_record(findings=[]))


def test_a_program_that_failed_or_used_no_tensorflow_is_not_praised() -> None:
    failed = drawn(sample_record(findings=[], exit_code=3))
    assert "Nothing was found before the program ended early." in failed
    foreign = drawn(sample_record(findings=[], versions={"stoker": "0.1.0", "python": "3.11.7"}))
    assert "Nothing stalls" not in failed + foreign


def test_small_findings_are_called_small() -> None:
    small = sample_finding(lost_s=0.01, what_if=None)
    assert "Nothing here costs 2 % or more." in drawn(sample_record(findings=[small]))
    # A price is the better judge.
    assert "Nothing here costs" not in drawn(sample_record(findings=[sample_finding(lost_s=0.01)]))


def test_what_is_worth_little_is_one_line_a_kind() -> None:
    little = WhatIf(1.01, 1.0, 1.02)
    reads = [sample_finding(line=n, what_if=little, lost_s=0.01) for n in range(50, 57)]
    copies = [sample_finding(kind="numpy-feed-in-loop", line=9, lost_s=0.0, what_if=None)]
    text = drawn(sample_record(findings=[sample_finding(), *reads, *copies]))
    assert text.count("print(loss.numpy())") == 1
    assert text.count("under 2 %") == 2
    assert "sync-in-loop  under 2 %  train.py:50, train.py:51, train.py:52, train.py:53 and 3 more" in text
    assert "numpy-feed-in-loop  under 2 %  train.py:9" in text


def test_the_price_stays_on_the_line_of_a_file_far_away() -> None:
    far = "/home/somebody/projects/experiments/reinforcement/agents/actor_critic/learner.py"
    for width, place in ((90, "…/actor_critic/learner.py:42 in train"), (80, "…/actor_critic/learner.py:42")):
        text = drawn(sample_record(findings=[sample_finding(file=far)]), width)
        assert f"sync-in-loop  {place}  3.1x faster (2.6-3.5) without it" in text
    # What does not fit at all is said in fewer words.
    lines = drawn(sample_record(findings=[sample_finding(file=far)]), 60).splitlines()
    assert " 1  sync-in-loop  learner.py:42  3.1x faster (2.6-3.5)" in [line.rstrip() for line in lines]


def test_a_long_name_and_its_price_fit_eighty_columns() -> None:
    long = sample_finding(
        kind="map-without-parallel-calls", file="train.py", what_if=WhatIf(2.8, 1.4, 4.5, basis="modelled")
    )
    lines = [line.rstrip() for line in drawn(sample_record(findings=[long]), 80).splitlines()]
    assert " 1  map-without-parallel-calls  train.py:42  2.8x faster (1.4-4.5), modelled" in lines


def test_what_a_finding_knows_is_said() -> None:
    parts = [{"file": "net.py", "line": n} for n in (3, 5, 8, 13)]
    detail = {"through": "matplotlib.pyplot.imshow", "same_array": True, "parts": parts}
    text = words(sample_record(findings=[sample_finding(detail=detail)]))
    assert "read by matplotlib.pyplot.imshow()" in text
    assert "the same array every time" in text
    assert "most in net.py:3, net.py:5, net.py:8" in text
    named = {"through": "gym.step", "call": "env.step(action)"}
    assert "read by env.step(action)" in words(sample_record(findings=[sample_finding(detail=named)]))
    cheap = sample_finding(detail=named, what_if=WhatIf(1.01, 1.0, 1.02), lost_s=0.01)
    assert "sync-in-loop  under 2 %  train.py:42 env.step(action)" in drawn(sample_record(findings=[cheap]))


def test_what_is_lost_outside_of_the_steps_is_said() -> None:
    after = sample_finding(kind="predict-in-loop", what_if=WhatIf(1.0, 1.0, 1.0, share=0.0), lost_s=3.2)
    text = drawn(sample_record(findings=[after]))
    assert "predict-in-loop  under 2 % of steps, but 3.20 s outside them  train.py:42" in text
    # 300 steps at 24.4 a second: 0.62 s of it are in the steps.
    partly = sample_finding(kind="predict-in-loop", what_if=WhatIf(1.05, 1.0, 1.1, share=0.05), lost_s=3.2)
    text = words(sample_record(findings=[partly]))
    assert "2.59 s of it outside the steps; the price covers only the steps" in text
    assert "outside" not in drawn(sample_record())


def test_what_spoils_the_results_is_not_called_cheap() -> None:
    title = "Batches are shuffled, not examples"
    shuffled = sample_finding(kind="shuffle-after-batch", line=8, title=title, lost_s=0.0, what_if=None)
    text = drawn(sample_record(findings=[shuffled]))
    assert f"shuffle-after-batch  no time, but: {title}  train.py:8" in text


def test_every_width_is_respected() -> None:
    for width in (40, 60, 80, 120, 200):
        assert all(len(line) <= width for line in drawn(sample_record(), width).splitlines())


def test_text_of_the_users_is_not_markup() -> None:
    text = drawn(sample_record(program="[red]x[/red].py", findings=[sample_finding(source="a[bold]b")]))
    assert "[red]x[/red].py" in text
    assert "a[bold]b" in text


def test_a_run_that_was_killed_says_so() -> None:
    assert "did not end" in words(sample_record(state="running", exit_code=None))


def test_a_failed_run_shows_its_code() -> None:
    assert "exit code 3" in words(sample_record(exit_code=3))


def test_a_retrace_shows_what_changed() -> None:
    changes = [{"argument": "n", "from": "3", "to": "4"}]
    finding = sample_finding(kind="retrace-python-arg", detail={"changes": changes})
    assert "n: 3 → 4" in drawn(sample_record(findings=[finding]))


def test_many_findings_are_cut() -> None:
    text = drawn(sample_record(findings=[sample_finding(line=n) for n in range(1, 15)]))
    assert "and 4 more" in text


def test_prices_and_what_to_repair_first() -> None:
    text = words(sample_simulated_record())
    assert "sync-in-loop train.py:42 in train 3.1x faster (2.6-3.5) without it" in text
    assert "All repaired: 3.1x faster (2.6-3.5) first sync-in-loop train.py:42 (3.1x)" in text


def test_a_repair_that_adds_nothing_any_more_is_not_told() -> None:
    order = [
        {"kind": "sync-in-loop", "file": "train.py", "line": 42, "alone": 2.0, "together": 2.0},
        {"kind": "numpy-feed-in-loop", "file": "train.py", "line": 7, "alone": 1.9, "together": 2.01},
    ]
    what_if = {"all": {"speedup": 2.01, "low": 1.9, "high": 2.2}, "order": order, "assumptions": []}
    text = words(sample_simulated_record(what_if=what_if))
    assert (
        "All repaired: 2.0x faster (1.9-2.2) first sync-in-loop train.py:42 (2.0x) (modelled, for steps after"
        in text
    )
    order[1]["together"] = 3.0
    text = words(
        sample_simulated_record(what_if=what_if | {"all": {"speedup": 3.0, "low": 1.9, "high": 3.2}})
    )
    assert (
        "(2.0x), then numpy-feed-in-loop train.py:7 (together 3.0x) (modelled, for steps after the first"
        in text
    )


def test_the_whole_run_with_all_repairs_keeps_what_is_not_a_step() -> None:
    record = sample_simulated_record(wall_s=20.0)
    assert record.what_if is not None
    repaired = dataclasses.replace(record.what_if, all=WhatIf(10.0, 9.0, 11.0))
    stepping = [SteppingRow(seconds=10.0, steps=300, accounts={})]
    record = dataclasses.replace(
        record, what_if=repaired, tables=dataclasses.replace(record.tables, stepping=stepping)
    )
    assert "(modelled, for steps after the first: this run 20.0 s → 11.0 s; details:" in words(record)


def test_repairs_that_gain_nothing_are_not_summed_up() -> None:
    """A loss outside of the steps has seconds, and no price: the steps would be as quick without it."""
    what_if = {"all": {"speedup": 1.0, "low": 1.0, "high": 1.0}, "order": [], "assumptions": []}
    lost = sample_finding(lost_s=3.0, what_if=None)
    text = words(sample_simulated_record(findings=[lost], what_if=what_if))
    assert "3.00 s lost" in text
    assert "All repaired" not in text


def test_one_step_is_no_plural() -> None:
    text = words(sample_record(steps=1, findings=[sample_finding(detail={"rows_per_call": 1.0})]))
    assert "1 step " in text
    assert "1 row a call" in text
    assert "  1 step  " in live.text(sample_record(steps=1))


def test_the_live_line() -> None:
    assert live.text(sample_record()) == "stoker  12 s  300 steps  24.4 steps/s  device 21% busy"
