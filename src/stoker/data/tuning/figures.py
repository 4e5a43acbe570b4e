"""What the tuner found, in figures: the tree of stages, the changes that stayed, what was left alone and why.

`Report.as_json` is a contract: fields are added, never renamed.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from stoker.records import LeftByTuner, TunedStage, TunerChange, TuningRow


@dataclass(frozen=True)
class StageFigures:
    """One stage of a pipeline, measured in one serial pass.

    Attributes:
        stage: what it is, in a few words.
        parallel_calls: how many at a time, as it was asked for; None if it was not.
        elements_per_s: how many elements it made a second.
        alone_per_s: how many it could make on one core if all else were free.
        core: the share of a core it took.
        element_bytes: the size of an element.
        inputs: the stages it reads.

    What TensorFlow does not tell of a stage is None.
    """

    stage: str
    parallel_calls: int | str | None = None
    elements_per_s: float | None = None
    alone_per_s: float | None = None
    core: float | None = None
    element_bytes: float | None = None
    inputs: tuple[StageFigures, ...] = ()


@dataclass(frozen=True)
class Kept:
    """A change that stayed: elements a second without and with it."""

    name: str
    stage: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class LeftAlone:
    """Something that was not changed, and why."""

    name: str
    stage: str
    why: str


@dataclass
class Report:
    """What `tune` did to a pipeline.

    Attributes:
        before: elements a second of the pipeline as it was; None if it could not be measured.
        after: of the one that was returned.
        before_per_cpu_s: the same per second of processor time, which other programs on the machine hardly change.
        after_per_cpu_s: the same.
        step_per_s: elements a second that the step takes; None if no step was given.
        rows_per_element: rows in an element, where its batches say so.
        changes: the changes that stayed, in order.
        left: what was not changed, and why.
        stages: the pipeline as it was.
        tuned: the pipeline as it is; None if it was not changed.
        compared: how many elements were compared in each of two epochs; 0 if the pipeline does not repeat itself.
    """

    before: float | None = None
    after: float | None = None
    before_per_cpu_s: float | None = None
    after_per_cpu_s: float | None = None
    step_per_s: float | None = None
    rows_per_element: int | None = None
    changes: list[Kept] = field(default_factory=list)
    left: list[LeftAlone] = field(default_factory=list)
    stages: StageFigures | None = None
    tuned: StageFigures | None = None
    compared: int = 0

    @property
    def gain(self) -> float:
        """How many times as fast it has become."""
        return self.after / self.before if self.before and self.after else 1.0

    def as_json(self) -> dict[str, Any]:
        """The report for other programs."""
        return {"schema": 1, "gain": self.gain, **dataclasses.asdict(self)}

    def row(self) -> TuningRow:
        """The report as the record of a run keeps it, and as it is shown."""
        return TuningRow(
            before=self.before,
            after=self.after,
            step_per_s=self.step_per_s,
            rows_per_element=self.rows_per_element,
            compared=self.compared,
            changes=[
                TunerChange(name=one.name, stage=one.stage, before=one.before, after=one.after)
                for one in self.changes
            ],
            left=[LeftByTuner(name=one.name, stage=one.stage, why=one.why) for one in self.left],
            stages=_from_the_last_down(self.stages),
            tuned=_from_the_last_down(self.tuned),
        )


def _from_the_last_down(top: StageFigures | None, depth: int = 0) -> list[TunedStage]:
    """One below the other, as the program has them; only where several come together is there a step to the right."""
    if top is None:
        return []
    calls = None if top.parallel_calls is None else str(top.parallel_calls)
    found = [
        TunedStage(
            depth=depth,
            stage=top.stage,
            parallel_calls=calls,
            elements_per_s=top.elements_per_s,
            alone_per_s=top.alone_per_s,
            core=top.core,
            element_bytes=top.element_bytes,
        )
    ]
    for source in top.inputs:
        found += _from_the_last_down(source, depth + (len(top.inputs) > 1))
    return found
