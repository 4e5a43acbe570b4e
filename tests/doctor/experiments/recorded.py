"""Steps recorded in this process, as `stoker run` records them."""

from __future__ import annotations

from collections.abc import Callable

from stoker import clock
from stoker.doctor.experiments.rebuilding import add_hidden_reads
from stoker.doctor.experiments.recording import RecordedStep, StepRecorder
from stoker.doctor.probes.session import Session


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
