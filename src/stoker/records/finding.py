"""A finding: a kind of stall at a line, its cost, its price, and the words of its remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypedDict

from stoker.records.section import Section, absent

# One argument whose new value made TensorFlow trace again. (`from` cannot be written as a field.)
Change = TypedDict("Change", {"argument": str, "from": str, "to": str})


class TunerGain(TypedDict):
    """What `stoker.tune` would gain, as the replay models it; rates are of elements."""

    # The change that would help, and what that supposes.
    change: str
    assumes: str
    step_per_s: float | None
    gives_per_s: float
    # At worst and at best: of the pipeline, and of the run's steps a second.
    could_give_per_s: list[float]
    speedup: list[float]
    # What measures it, where the pipeline is made in a function.
    command: str | None


class Detail(TypedDict, total=False):
    """What the probe adds to a finding's figures. Each kind has some of these; others may come."""

    # What a reader must know to judge the figures.
    note: str
    # A function that was traced again: its name, and what changed from call to call.
    function: str
    traces: int
    objects: int
    changes: list[Change]
    # Ops run one by one.
    ops: int
    ops_per_step: float
    # The lines an eager step is made of: file, line, function, ops, seconds.
    parts: list[dict[str, Any]]
    # Launching a call from the host, and running it, in microseconds.
    call_us: float
    compute_us: float
    # Rows in a call of `predict`.
    rows_per_call: float
    callback: str
    hook: str
    # The library's function that reads the tensor, and its call as the program has it.
    through: str
    call: str
    # It is the same array that is copied every time.
    same_array: bool
    # A job: the worker that is slow, on which account, and those on which it was found; exchanges in a step.
    worker: int
    account: str
    workers: list[int]
    collectives: int
    # The stages of an input pipeline, and the one the profiler saw at work longest.
    pipeline: list[str]
    slow_stage: str | None
    tuner: TunerGain


@dataclass(frozen=True)
class WhatIf(Section):
    """The price of a finding: how much faster the run would have been without it."""

    speedup: float
    low: float
    high: float
    # Of the stepping time: what the finding itself holds, and by name what its repair may free elsewhere. A speed-up
    # is never above 1 / (1 - share - everything freed). None in a record of before they were kept.
    share: float | None = absent()
    frees: dict[str, float] | None = absent()  # noqa: RUF009 - it is a field


@dataclass(frozen=True)
class Finding(Section):
    """A kind of stall at a line of the user's program, with its evidence, its cost and its remedy.

    `remedy` is what to do, in a sentence: the stall's own (`stoker.doctor.stalls`), or a more exact one where
    the run knows better (a detector's).
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
    # What the run would have been spared: a wait for useful work is in `seconds` but not lost.
    lost_s: float | None = None
    bytes: int | None = None
    what_if: WhatIf | None = None
    detail: Detail = field(default_factory=Detail)


@dataclass(frozen=True)
class RepairPlace(Section):
    """One finding in the order of repair: its gain by itself, and together with those before it."""

    kind: str
    file: str
    line: int
    alone: float
    together: float


@dataclass(frozen=True, kw_only=True)
class Repairs(Section):
    """All findings together, the order in which to repair them, and what the prices suppose, in words."""

    all: WhatIf | None = None
    order: list[RepairPlace] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
