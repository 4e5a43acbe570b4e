"""The evidence for the findings, as tables: what was traced, called, read, copied, saved and waited for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from stoker.records.finding import FindingKey, WhatIf
from stoker.records.section import EXTRA, Section, absent
from stoker.records.writing import plain

# Two runs of a program differ by at most this factor in nine of ten cases: 3.5 % of a step each, as standard errors.
_RUNS_DIFFER = 1.085
# A replay is off by this share of a gain's logarithm: downwards, upwards.
_REPLAY_OFF = (0.4, 0.6)


@dataclass(frozen=True, kw_only=True)
class AtSite(Section):
    """A row about a line of the program. The columns that name the line are left out if it is unknown."""

    file: str | None = absent()
    line: int | None = absent()
    function: str | None = absent()

    @property
    def where(self) -> str:
        """`train.py:42`, or empty."""
        return f"{self.file}:{self.line}" if self.file else ""


@dataclass(frozen=True, kw_only=True)
class AboutFinding(AtSite):
    """A row about a finding of the run."""

    kind: str

    @property
    def key(self) -> FindingKey:
        """The finding's kind, file and line."""
        return self.kind, self.file or "", self.line or 0


@dataclass(frozen=True, kw_only=True)
class ChangeRow(Section):
    """One argument that made TensorFlow trace again; `python` if it is a Python value rather than a shape or dtype."""

    argument: str
    old: str
    new: str
    python: bool = False


@dataclass(frozen=True, kw_only=True)
class TraceRow(AtSite):
    """A function that was traced; `objects` is the number of tf.functions made from its single definition."""

    traces: int
    retraces: int = 0
    objects: int = 1
    seconds: float
    changes: list[ChangeRow] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class FunctionRow(AtSite):
    """A compiled function that was called; `first_calls_s` is how much longer its first calls took than usual ones."""

    calls: int
    seconds: float
    graph_s: float = 0.0
    first_calls_s: float = 0.0
    jit_compile: bool = False


@dataclass(frozen=True, kw_only=True)
class CallbackRow(AtSite):
    """A hook of a callback."""

    callback: str
    hook: str
    calls: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class EpochRow(Section):
    """The logs of Keras' `fit` at the end of an epoch: losses and metrics by name, null for NaN."""

    # Counted from 1 in each call of `fit`.
    epoch: int
    # The number of training steps of the run so far.
    step: int
    values: dict[str, float | None]


@dataclass(frozen=True, kw_only=True)
class PipelineStage(AtSite):
    """A stage of a pipeline as it was written; `python` if it runs Python code."""

    name: str
    python: bool = False


@dataclass(frozen=True, kw_only=True)
class RanStage(Section):
    """A stage as tf.data ran it and counted: the elements it made, and the seconds it took for them."""

    name: str
    elements: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class PipelineRow(Section):
    """A pipeline that was read, with its last stage first."""

    stages: list[PipelineStage]
    elements: int
    wait_s: float
    first_wait_s: float = 0.0
    # The stages as tf.data rewrote them, from the root down; empty if tf.data does not report them.
    ran: list[RanStage] = field(default_factory=list)
    # Whether elements are made before they are asked for; None in records older than this field.
    ahead: bool | None = None
    iterators: int = 0
    teardown_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class TunedStage(Section):
    """A stage as the tuner measured it; `depth` counts the merges of several inputs between it and the last stage.

    Figures that TensorFlow does not report for a stage are None.
    """

    depth: int
    stage: str
    parallel_calls: str | None = None
    elements_per_s: float | None = None
    alone_per_s: float | None = None
    core: float | None = None
    element_bytes: float | None = None


@dataclass(frozen=True, kw_only=True)
class TunerChange(Section):
    """A change that was kept: elements per second without and with it."""

    name: str
    stage: str
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True, kw_only=True)
class LeftByTuner(Section):
    """A stage that the tuner did not change, and why."""

    name: str
    stage: str
    why: str


@dataclass(frozen=True, kw_only=True)
class TuningRow(AtSite):
    """A call of `stoker.tune`: what it found and did, and the line that called it. Rates are in elements per second."""

    before: float | None = None
    after: float | None = None
    # The rate at which the step takes elements, if the tuner knew it.
    step_per_s: float | None = None
    rows_per_element: int | None = None
    # The number of elements compared in each of two epochs; 0 if the pipeline does not repeat itself.
    compared: int = 0
    changes: list[TunerChange] = field(default_factory=list)
    left: list[LeftByTuner] = field(default_factory=list)
    # The pipeline before and after; the latter is empty if the pipeline was not changed.
    stages: list[TunedStage] = field(default_factory=list)
    tuned: list[TunedStage] = field(default_factory=list)

    @property
    def gain(self) -> float:
        """The speed-up of the pipeline, as a factor."""
        return self.after / self.before if self.before and self.after else 1.0


@dataclass(frozen=True, kw_only=True)
class StageRow(Section):
    """A stage as TensorFlow ran it, by its path from the root."""

    path: str
    calls: int
    self_s: float


@dataclass(frozen=True, kw_only=True)
class TallyRow(AtSite):
    """Reads, copies or checkpoints at a line."""

    count: int
    seconds: float
    wait_s: float = 0.0
    bytes: int = 0


@dataclass
class WindowSums:
    """Sums over the profiler's windows, in nanoseconds; in a worker with peers, over its compiled calls."""

    windows: int = 0
    window_ns: int = 0
    # The time inside compiled functions, and the part of it in which the graph only waited for the next element.
    graph_ns: int = 0
    graph_input_ns: int = 0
    # The part of `graph_ns` in which the graph only waited for an exchange with other workers.
    graph_communication_ns: int = absent(0)
    # The part of `graph_ns` in which kernels ran; the number of calls; and `graph_busy_ns` if all calls had been as
    # quick as the quickest.
    graph_busy_ns: int = 0
    graph_calls: int = 0
    graph_quick_ns: int = 0
    # The time inside eager ops, and the part of it in which a kernel ran; the number of kernels; and the time that as
    # many empty ones take.
    eager_ns: int = 0
    eager_kernel_ns: int = 0
    eager_kernels: int = 0
    eager_floor_ns: int = 0
    # The time of those kernels when undisturbed: on a busy machine, a kernel that loses its processor takes a hundred
    # times as long.
    eager_calm_ns: int = absent(0)
    # The part of `eager_calm_ns` in kernels so long that they divide their work among all processors by themselves.
    eager_wide_ns: int = absent(0)
    # The time in which the device had work.
    busy_ns: int = 0
    # Always empty in a record: the stages have their own table.
    stages: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class SteppingRow(Section):
    """The time between the end of the first step and the end of the last, by the recorder's raw accounts."""

    seconds: float
    steps: int
    accounts: dict[str, float]
    # The part of the seconds after the last step, until the device had done all queued work. It belongs to `sync`.
    drain_s: float = 0.0
    cores: int = 1
    kernel_threads: int = 1
    gradient_bytes: int = 0
    asynchronous: bool = False
    # The ops run one by one: how many, the time in and between them, and the time in them.
    eager_ops: int = 0
    eager_s: float = 0.0
    eager_op_s: float = 0.0
    # The seconds that were estimated from the rest instead of measured, and the standard error of an estimate, as a
    # share.
    estimated_s: float = 0.0
    estimate_error: float = 0.0
    # Of these seconds: the processor time of all threads, and the time that the main thread, and all threads, waited
    # for a processor.
    cpu_s: float = 0.0
    waited_s: float = 0.0
    all_waited_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class WorkerRow(Section):
    """A worker of a job; its `communication` consists of `waiting_s` (for its peers) and `exchange_s`."""

    rank: int
    # The id of the worker's own record.
    run: str
    wall_s: float
    steps: int
    steps_per_s: float | None = None
    exit_code: int | None = None
    accounts: dict[str, float] = field(default_factory=dict)
    waiting_s: float = 0.0
    exchange_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ExperimentRow(AboutFinding):
    """A repair that was timed at the end of the run, or the reason why it was not.

    Seconds are those of one step, with a value for each round: of the recorded part as it was, and of its replacement.
    """

    was_s: list[float] = field(default_factory=list)
    repaired_s: list[float] = field(default_factory=list)
    # The share of the step's eager ops that was rebuilt.
    covers: float = 0.0
    # The seconds of single steps of the run, without interruptions, and those of the part that the repair replaces.
    step_s: list[float] = field(default_factory=list)
    own_s: list[float] = field(default_factory=list)
    # The mean of `step_s`.
    mean_s: float = 0.0
    # The repairs that replace all that this one replaces, and more: `kind:line`.
    within: list[str] = field(default_factory=list)
    # Why there is no figure; empty if there is one.
    failed: str = absent("")


@dataclass(frozen=True, kw_only=True)
class RepairedLine(AboutFinding):
    """A finding that was repaired."""


@dataclass(frozen=True, kw_only=True)
class VerifiedRow(Section):
    """Findings that were repaired together, and how many times as fast the steps of the repaired program were.

    This factor is their price from then on. `basis` says whether the program was run, or the run was replayed with what
    was measured of its input.
    """

    lines: list[RepairedLine]
    speedup: float
    # The command that measured it.
    by: str
    basis: str = "measured"

    @property
    def keys(self) -> frozenset[FindingKey]:
        """The findings by kind, file and line."""
        return frozenset(line.key for line in self.lines)

    def price(self, share: float | None) -> WhatIf:
        """Return the price of the findings together, which account for this share of a step."""
        speedup = max(1.0, self.speedup)
        if self.basis == "measured":
            low, high = max(1.0, speedup / _RUNS_DIFFER), speedup * _RUNS_DIFFER
        else:
            low, high = speedup ** (1 - _REPLAY_OFF[0]), speedup ** (1 + _REPLAY_OFF[1])
        return WhatIf(round(speedup, 3), round(low, 3), round(high, 3), share, None, self.basis)


@dataclass(frozen=True, kw_only=True)
class Tables(Section):
    """All tables; those for which a run has no rows are empty."""

    traces: list[TraceRow] = field(default_factory=list)
    functions: list[FunctionRow] = field(default_factory=list)
    callbacks: list[CallbackRow] = field(default_factory=list)
    epochs: list[EpochRow] = field(default_factory=list)
    pipelines: list[PipelineRow] = field(default_factory=list)
    stages: list[StageRow] = field(default_factory=list)
    tunings: list[TuningRow] = field(default_factory=list)
    syncs: list[TallyRow] = field(default_factory=list)
    copies: list[TallyRow] = field(default_factory=list)
    checkpoints: list[TallyRow] = field(default_factory=list)
    # The software GPU's counters, one row per device.
    devices: list[dict[str, Any]] = field(default_factory=list)
    # One row, or none; read it through `sums` and `stepping_phase`.
    windows: list[WindowSums] = field(default_factory=list)
    stepping: list[SteppingRow] = field(default_factory=list)
    experiments: list[ExperimentRow] = field(default_factory=list)
    verified: list[VerifiedRow] = field(default_factory=list)
    # The workers of a job.
    workers: list[WorkerRow] = field(default_factory=list)

    @classmethod
    def from_rows(cls, tables: Mapping[str, list[Any]]) -> Tables:
        """Build tables from rows by name. A table without a field here is written as plain JSON, in `extra`."""
        known = {f.name for f in fields(cls)} - {EXTRA}
        extra = {name: [plain(row) for row in rows] for name, rows in tables.items() if name not in known}
        return cls(**{name: rows for name, rows in tables.items() if name in known}, extra=extra)

    @property
    def sums(self) -> WindowSums:
        """The sums that the profiler's windows saw; empty if there were none."""
        return self.windows[0] if self.windows else WindowSums()

    @property
    def stepping_phase(self) -> SteppingRow | None:
        """The phase that a replay replays; None for a run without steps."""
        return self.stepping[0] if self.stepping else None
