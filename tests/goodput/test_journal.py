"""The journal of one process: real files, real kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.errors import UsageError
from stoker.goodput import journal
from stoker.goodput.events import ClockTied, PhaseBegun, RunResumed, StepsDone, decode
from stoker.goodput.ledger import Price

PROGRAM = """
import os, signal, sys, time
from stoker.goodput import journal
journal.begin(sys.argv[1])
with journal.at_line("train.py:3"):
    with journal.phase("restoring"):
        journal.note_resumed(None, 0)
    with journal.phase("training"):
        with journal.waiting("peers"): pass
        time.sleep(0.05)
        journal.note_call(0, 8, 0.05, cold=True)
        for first in range(8, 1008):
            journal.note_call(first, first + 1, 0.001, 0.0005, cold=False)
        if not os.fork():
            # A child has no journal.
            journal.note_call(2000, 3000, 1.0, cold=True)
            os._exit(0)
        os.wait()
        with journal.phase("saving"):
            journal.note_counted("run 1", 1008)
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_did_is_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "own.events"
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    events = decode(path.read_bytes())
    assert isinstance(events[0], ClockTied)
    phases = [(event.phase, event.line) for event in events if isinstance(event, PhaseBegun)]
    inside = ["startup", "restoring", "startup", "training", "saving"]
    assert phases == [(name, "train.py:3") for name in inside]
    assert [event.step for event in events if isinstance(event, RunResumed)] == [0]
    calls = [event for event in events if isinstance(event, StepsDone)]
    waited, compiled, *calls = calls
    assert waited.last == 0
    assert waited.peers_s > 0
    assert (compiled.first, compiled.last, compiled.steps_s, compiled.cold) == (0, 8, 0.05, True)
    # The call has its time: what came before it is noted as of its beginning.
    assert compiled.at - waited.at >= 0.05e9
    # A thousand calls in a few lines, one after the other, and nothing of them is lost.
    assert len(calls) < 100
    assert [one.first for one in calls] == [compiled.last, *(one.last for one in calls[:-1])]
    assert calls[-1].last == 1008
    assert sum(one.steps_s for one in calls) == pytest.approx(0.5)
    assert sum(one.data_s for one in calls) == pytest.approx(0.5)


def test_a_full_disk_ends_the_journal_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_journal", None)
    with journal.phase("saving"), journal.at_line("train.py:1"), journal.waiting("data"):
        journal.note_call(0, 1, 1.0, cold=False)
    journal.begin("/dev/full")
    assert not journal.is_kept()
    with journal.phase("saving"):
        journal.note_counted("run", 1)
    journal.begin(os.fspath("/nowhere/at/all"))
    assert not journal.is_kept()


def test_a_price_is_a_number_for_an_hour() -> None:
    price = Price.parse("$3.20/h")
    assert price.show(7200) == "$6.40"
    assert price.of(1800) == pytest.approx(1.6)
    assert Price.parse("3.20/h") == Price("3.20/h", 3.2)
    assert Price.parse("10").show(3600) == "10.00"
    for wrong in ("cheap", "3.20/d", "-1/h", ""):
        with pytest.raises(UsageError, match="what one worker costs in an hour"):
            Price.parse(wrong)
