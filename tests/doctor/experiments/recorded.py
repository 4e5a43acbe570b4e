"""Steps recorded in this process, as `stoker run` records them, and trials on them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

from stoker import clock
from stoker.doctor.attach.sites import shown_path
from stoker.doctor.experiments import checking
from stoker.doctor.experiments.rebuilding import add_hidden_reads
from stoker.doctor.experiments.recorded_step import RecordedStep
from stoker.doctor.experiments.recording import StepRecorder
from stoker.doctor.experiments.timing import LEAST_ROUNDS, ExperimentBudget, time_in_turn
from stoker.doctor.experiments.trial import RepairTrial
from stoker.doctor.experiments.trials import TRIALS
from stoker.doctor.probes.session import Session
from stoker.doctor.stall import find_stall
from stoker.records import Detail, Finding


def record_step(run_loop: Callable[[], None]) -> tuple[RecordedStep | None, list[str]]:
    """Run a loop of at least ten steps under the probes; the step that was recorded, and what was noted."""
    session = Session(clock.now_ns())
    recorder = StepRecorder(session.steps, session.recorder)
    session.steps.on_step_end = recorder.step_ended
    session.attach_now()
    try:
        run_loop()
    finally:
        recorder.stop()
        session.detach()
    step = next(iter(recorder.recorded.values()), None)
    if step is not None:
        add_hidden_reads(step)
    return step, session.recorder.notes


def finding_at(caller: Callable[..., object], text: str, kind: str, **detail: Any) -> Finding:
    """A finding at the line of a function that holds this text."""
    lines, first = inspect.getsourcelines(caller)
    (line,) = [first + number for number, code in enumerate(lines) if text in code]
    stall = find_stall(kind)
    assert stall is not None
    file = shown_path(inspect.getsourcefile(caller) or "")
    return stall.finding(file=file, line=line, function=caller.__name__, detail=cast(Detail, detail))


def run_trial(step: RecordedStep | None, finding: Finding, experiment: str) -> RepairTrial:
    """Rebuild, check and time it."""
    assert step is not None
    with checking.functions_registered(step), checking.variables_put_back(step):
        trial = TRIALS[experiment](step, finding)
        taken = time_in_turn(trial.ways, ExperimentBudget(300))
    for rounds in taken:
        assert len(rounds) >= LEAST_ROUNDS
        assert min(rounds) > 0
    return trial
