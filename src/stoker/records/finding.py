"""A finding: a kind of stall at a line, with its cost, its price and its remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

from stoker.records.section import Section, absent

FindingKey = tuple[str, str, int]
"""The kind, file and line of a finding."""

# One argument whose new value made TensorFlow trace again. (A class body cannot declare a field named `from`.)
Change = TypedDict("Change", {"argument": str, "from": str, "to": str})


class TunerGain(TypedDict):
    """The gain expected from `stoker.tune`, as modelled by the replay. Rates are in elements per second."""

    # The change that would help, and what this prediction assumes.
    change: str
    assumes: str
    step_per_s: float | None
    gives_per_s: float
    # The pipeline's rate, and the speed-up of the run, each at worst and at best.
    could_give_per_s: list[float]
    speedup: list[float]
    # The command that measures the gain, if a function makes the pipeline.
    command: str | None


class Detail(TypedDict, total=False):
    """The figures that a detector adds to a finding. Each kind has some of these fields; there may be others."""

    # What a reader must know to judge the figures.
    note: str
    # A function that was traced again: its name, and what changed from call to call.
    function: str
    traces: int
    objects: int
    # The number of models that one line had traced.
    models: int
    changes: list[Change]
    # The number of ops run one by one.
    ops: int
    ops_per_step: float
    # The lines that make up an eager step: file, line, function, ops, seconds.
    parts: list[dict[str, Any]]
    # The microseconds that launching a call from the host takes, and those that running it takes.
    call_us: float
    compute_us: float
    # The rows in a call of `predict`.
    rows_per_call: float
    # Whether these rows are parts of a larger array, so that all of them could be given to one call.
    rows_are_there: bool
    callback: str
    hook: str
    # Whether the callback calls `predict` or another loop of Keras.
    runs_loops: bool
    # The share of its time in which it waited for a processor that other programs had.
    waited_share: float
    # The library function that reads the tensor, and the call of it in the program.
    through: str
    call: str
    # Whether the same array is copied every time.
    same_array: bool
    # In a job: the slow worker, its account, the workers with this finding, and the exchanges in a step.
    worker: int
    account: str
    workers: list[int]
    collectives: int
    # For memory: what is added at each step, the name of the list that grows, the copies of an array, the device, the
    # shape and dtype of a tensor.
    bytes_per_step: int
    # What training needs, if validation needs more; and a frozen layer that has slots.
    training_bytes: int
    layer: str
    name: str
    copies: int
    device: str
    shape: list[int]
    dtype: str
    # The stages of an input pipeline, and the stage that the profiler saw at work longest.
    pipeline: list[str]
    slow_stage: str | None
    # Whether a cache keeps what that stage makes.
    cached: bool
    tuner: TunerGain


@dataclass(frozen=True)
class WhatIf(Section):
    """The price of a finding: how much faster the run would have been without it."""

    speedup: float
    low: float
    high: float
    # Shares of the stepping time: that of the finding itself, and by name those that its repair may free elsewhere. A
    # speed-up never exceeds 1 / (1 - share - everything freed). None in records older than these fields.
    share: float | None = absent()
    frees: dict[str, float] | None = absent()  # noqa: RUF009 - it is a field
    # "measured": the repaired step was timed; "modelled": the run was replayed. None in records older than this field.
    basis: str | None = absent()


@dataclass(frozen=True)
class Finding(Section):
    """A kind of stall at a line of the user's program, with its evidence, its cost and its remedy.

    `remedy` says what to do, in a sentence: the stall's own (`stoker.doctor.stalls`), or a more exact one that the
    detector chose.
    """

    kind: str
    code: str
    file: str
    line: int
    title: str
    remedy: str
    column: int | None = None
    function: str = ""
    source: str = ""
    evidence: str = "measured"
    count: int | None = None
    seconds: float | None = None
    wait_s: float | None = None
    copy_s: float | None = None
    # The time that the run would save. Waiting for useful work counts in `seconds`, but it is not lost.
    lost_s: float | None = None
    bytes: int | None = None
    # Memory that the program would not need without this stall. Only findings about memory have this field.
    bytes_saved: int | None = absent()
    what_if: WhatIf | None = None
    detail: Detail = field(default_factory=Detail)

    @property
    def key(self) -> FindingKey:
        """The finding's kind, file and line."""
        return self.kind, self.file, self.line


@dataclass(frozen=True)
class RepairPlace(Section):
    """One finding in the order of repair: its gain by itself, and together with those before it."""

    kind: str
    file: str
    line: int
    alone: float
    together: float

    @property
    def key(self) -> FindingKey:
        """The finding's kind, file and line."""
        return self.kind, self.file, self.line


@dataclass(frozen=True, kw_only=True)
class Repairs(Section):
    """All findings together, the order in which to repair them, and what the prices assume, in words."""

    all: WhatIf | None = None
    order: list[RepairPlace] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
