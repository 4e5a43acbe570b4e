"""The same jobs through Stoker's ledger of a job and through ml-goodput-measurement: do they agree?

    pip install ml-goodput-measurement          # or stoker[bench-goodput]; best in an environment of its own
    PYTHONPATH=src python benchmarks/goodput.py

The jobs have the shapes of that package's own tests: a start, steps, faults after which steps are done again, a first
step that compiles, saves that hold up a step. Both get every event with its time; nothing is measured, nothing waits.
Its log is a list here; otherwise it writes to Google Cloud.
"""

from __future__ import annotations

import datetime
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ml_goodput_measurement.src import goodput as theirs

from stoker.goodput.accounts import TRAINING
from stoker.goodput.events import PhaseBegun, RunResumed, StepsDone, WorkerEvent
from stoker.goodput.fold import fold
from stoker.goodput.history import JobHistory, RoundHistory, WorkerHistory

S = 1_000_000_000
EPOCH = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


@dataclass(frozen=True)
class Scenario:
    """A job of one worker; each part of `rounds` is a first step, a last step, and the seconds until the next start."""

    name: str
    rounds: tuple[tuple[int, int, float], ...]
    step_s: float = 3.0
    jitter: float = 0.0
    start_s: float = 5.0
    # What the first step of every process takes beyond the others.
    compile_s: float = 0.0
    save_every: int = 0
    save_s: float = 10.0
    # Whether both mean the same by goodput here.
    is_defined_alike: bool = True


SCENARIOS = (
    Scenario("five steps after a start", ((0, 5, 0.0),)),
    Scenario("the first step compiles", ((0, 5, 0.0),), compile_s=5.0),
    Scenario("one fault, two steps again", ((0, 5, 5.0), (3, 10, 0.0)), compile_s=5.0),
    Scenario(
        "three faults",
        ((0, 40, 8.0), (30, 70, 20.0), (65, 90, 5.0), (85, 200, 0.0)),
        compile_s=20.0,
        jitter=0.1,
    ),
    # They notice a restart by a step that begins for a second time. Here there is none, so what passed between the last
    # step of one process and the first of the next is a long step to them, and productive.
    Scenario(
        "a fault right after a save", ((0, 40, 20.0), (40, 80, 0.0)), compile_s=20.0, is_defined_alike=False
    ),
    Scenario(
        "saves hold up steps", ((0, 100, 6.0), (90, 200, 0.0)), save_every=15, compile_s=5.0, jitter=0.05
    ),
    Scenario(
        "twenty faults",
        (*((number * 90, number * 90 + 100, 15.0) for number in range(20)), (1800, 2000, 0.0)),
        compile_s=30.0,
        save_every=30,
        save_s=2.0,
        jitter=0.2,
        step_s=1.0,
    ),
)


@dataclass(frozen=True)
class Moment:
    """Something that happens in a job: at a second, what, and the step it concerns."""

    at: float
    what: str
    step: int = 0


def play(scenario: Scenario) -> Iterator[Moment]:
    """The job, from its start to its end."""
    draw = random.Random(1)
    now = 0.0
    for first, last, down_s in scenario.rounds:
        yield Moment(now, "start", first)
        now += scenario.start_s
        for step in range(first, last):
            yield Moment(now, "step", step)
            now += scenario.step_s * draw.uniform(1 - scenario.jitter, 1 + scenario.jitter)
            now += scenario.compile_s * (step == first)
            yield Moment(now, "done", step)
            if scenario.save_every and (step + 1) % scenario.save_every == 0 and step + 1 < last:
                yield Moment(now, "save", step)
                now += scenario.save_s
                yield Moment(now, "saved", step)
        yield Moment(now, "end", last)
        now += down_s


class ListLogger:
    """Keeps what their recorder would send to the cloud."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    def write_cloud_logging_entry(self, entry: Any) -> None:
        self.entries.append((theirs.get_timestamp_from_log_entry(entry), entry))

    def read_cloud_logging_entries(self, *_: Any, **__: Any) -> tuple[list[Any], None]:
        return [entry for _, entry in self.entries], None


def measure_theirs(moments: list[Moment]) -> dict[str, float]:
    """Goodput, and what was lost, in percent of the job's time."""
    log = ListLogger()
    recorder = theirs.GoodputRecorder("job", "log", True, log)
    for moment in moments:
        at = EPOCH + datetime.timedelta(seconds=moment.at)
        if moment.what == "start":
            recorder.record_job_start_time(at)
        elif moment.what == "step":
            recorder.record_step_start_time(moment.step, at)
        elif moment.what == "save":
            recorder.record_custom_badput_event_start_time(at, "save")
        elif moment.what == "saved":
            recorder.record_custom_badput_event_end_time(at, "save")
    recorder.record_job_end_time(EPOCH + datetime.timedelta(seconds=moments[-1].at))
    with tempfile.TemporaryDirectory() as cache:
        calculator = theirs.GoodputCalculator("job", "log", log, cache_dir=cache)
        share, lost, _ = calculator.get_job_goodput(include_badput_breakdown=True)
    kind = theirs.BadputType
    return {
        "goodput": share,
        "compiling": lost[kind.PROGRAM_STARTUP],
        "saving": sum(lost[kind.CUSTOM_BADPUT_EVENTS].values()),
        # They count a step that a fault cut off, and all until the next start, as one thing.
        "faults": lost[kind.WASTED_PROGRESS_FROM_DISRUPTION]
        + lost[kind.INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION],
    }


def measure_ours(moments: list[Moment]) -> dict[str, float]:
    """The same from Stoker's ledger."""
    rounds: list[RoundHistory] = []
    workers: list[WorkerHistory] = []
    events: list[WorkerEvent] = []
    begun = 0.0
    for moment in moments:
        at = round(moment.at * S)
        if moment.what == "start":
            rounds.append(RoundHistory(len(rounds), [0], at))
            first, events = moment.step, []
        elif moment.what == "step":
            if not events:
                events += [PhaseBegun(at, TRAINING), RunResumed(at, "run", moment.step)]
            begun = moment.at
        elif moment.what == "done":
            cold = moment.step == first
            events.append(StepsDone(at, "run", moment.step, moment.step + 1, moment.at - begun, cold=cold))
        elif moment.what in ("save", "saved"):
            events.append(PhaseBegun(at, "saving" if moment.what == "save" else TRAINING))
        else:
            number = rounds[-1].number
            workers.append(WorkerHistory(number, 0, rounds[-1].began, events, at))
            rounds[-1] = RoundHistory(number, [0], rounds[-1].began, at, "fault", f"fault {number}")
    last = rounds[-1]
    rounds[-1] = RoundHistory(last.number, [0], last.began, last.over, "done")
    ledger = fold("job", JobHistory(0, rounds, workers, rounds[-1].over, True))
    wall, spent = ledger.wall_s, ledger.accounts
    assert abs(sum(spent.values()) - wall) < 1e-6 * wall
    return {
        "goodput": 100 * spent["productive"] / wall,
        "compiling": 100 * spent["compiling"] / wall,
        "saving": 100 * spent["saving"] / wall,
        "faults": 100 * (spent["recomputed"] + spent["idle"]) / wall,
    }


def main() -> int:
    """Print both; the exit code is 1 if any goodput differs by more than 1 %."""
    worst = 0.0
    print(f"{'percent of the job':28} {'goodput':>17} {'compiling':>17} {'saving':>17} {'faults':>17}")
    for scenario in SCENARIOS:
        moments = list(play(scenario))
        ours, other = measure_ours(moments), measure_theirs(moments)
        cells = [f"{ours[name]:7.2f} / {other[name]:7.2f}" for name in ours]
        print(f"{scenario.name:28} {' '.join(f'{cell:>17}' for cell in cells)}")
        if scenario.is_defined_alike:
            worst = max(worst, abs(ours["goodput"] - other["goodput"]) / other["goodput"])
    print(f"ours / theirs; where both define it alike, goodput differs by at most {worst:.3%} of it")
    return int(worst > 0.01)


if __name__ == "__main__":
    sys.exit(main())
