"""The report of the tuner: the tree of stages, the changes that were kept, what was left alone, and why.

`TuningReport.as_json` is a contract: fields are added, never renamed.
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
        stage: a description of the stage in a few words.
        parallel_calls: how many calls at a time the program asked for; None if it did not.
        elements_per_s: how many elements it made per second.
        alone_per_s: how many it could make on one core if everything else cost nothing.
        core: the share of a core it took.
        element_bytes: the size of an element.
        inputs: the stages it reads.

    Values that TensorFlow does not give are None.
    """

    stage: str
    parallel_calls: int | str | None = None
    elements_per_s: float | None = None
    alone_per_s: float | None = None
    core: float | None = None
    element_bytes: float | None = None
    inputs: tuple[StageFigures, ...] = ()


@dataclass(frozen=True)
class KeptChange:
    """A change that was kept: elements per second without and with it."""

    name: str
    stage: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class LeftAlone:
    """A change that was not made, and why."""

    name: str
    stage: str
    why: str


@dataclass
class TuningReport:
    """The report of what `tune` did to a pipeline.

    Attributes:
        before: elements per second of the original pipeline; None if it could not be measured.
        after: elements per second of the returned pipeline.
        before_per_cpu_s: `before` per second of processor time, which other programs on the machine hardly change.
        after_per_cpu_s: `after` per second of processor time.
        step_per_s: elements per second that the step takes; None if no step was given.
        rows_per_element: rows in an element; None if no batch tells.
        changes: the changes that were kept, in order.
        left: the changes that were not made, and why.
        stages: the original pipeline.
        tuned: the returned pipeline; None if nothing was changed.
        compared: how many elements were compared in each of two epochs; 0 if the pipeline does not repeat itself.
    """

    before: float | None = None
    after: float | None = None
    before_per_cpu_s: float | None = None
    after_per_cpu_s: float | None = None
    step_per_s: float | None = None
    rows_per_element: int | None = None
    changes: list[KeptChange] = field(default_factory=list)
    left: list[LeftAlone] = field(default_factory=list)
    stages: StageFigures | None = None
    tuned: StageFigures | None = None
    compared: int = 0

    @property
    def gain(self) -> float:
        """The speed-up of the pipeline, as a factor."""
        return self.after / self.before if self.before and self.after else 1.0

    def as_json(self) -> dict[str, Any]:
        """Return the report for other programs."""
        return {"schema": 1, "gain": self.gain, **dataclasses.asdict(self)}

    def row(self) -> TuningRow:
        """Return the report in the form in which it is recorded with a run, and shown."""
        return TuningRow(
            before=self.before,
            after=self.after,
            step_per_s=self.step_per_s,
            rows_per_element=self.rows_per_element,
            compared=self.compared,
            changes=[TunerChange(**vars(one)) for one in self.changes],
            left=[LeftByTuner(**vars(one)) for one in self.left],
            stages=_flatten(self.stages),
            tuned=_flatten(self.tuned),
        )


def _flatten(top: StageFigures | None, depth: int = 0) -> list[TunedStage]:
    """Return the stages from the last down. Inputs are indented only if a stage has several."""
    if top is None:
        return []
    fields = {name: value for name, value in vars(top).items() if name != "inputs"}
    if top.parallel_calls is not None:
        fields["parallel_calls"] = str(top.parallel_calls)
    found = [TunedStage(depth=depth, **fields)]
    for source in top.inputs:
        found += _flatten(source, depth + (len(top.inputs) > 1))
    return found
