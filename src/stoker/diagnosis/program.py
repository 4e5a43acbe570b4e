"""A measured run as something that can be replayed: its steps as pieces of work, and what feeds them.

Built from a saved record alone. The pieces are the spans of the record's windows, stretched so that their sums are
those of the whole stepping phase: windows show the structure, the sums are exact.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.records import Record
from stoker.software_gpu.profiles import PROFILES

# More steps tell nothing new and take time.
_MAX_STEPS = 96
# An input that keeps the step waiting for more than this share of its time is the slower of the two.
_STARVED = 0.05
_FIRST_CALL = ", first call"
# A new iterator's first element: nothing could have been ready.
FIRST_ELEMENT = "first element"
# Stages that only hold elements: waiting there is not work.
_BUFFERS = ("Prefetch", "Root", "Model")

Site = tuple[str, int]


@dataclass(frozen=True)
class Piece:
    """What the main thread did for a while."""

    account: str
    seconds: float
    site: Site | None = None
    name: str = ""
    # The part of `seconds` in which it waited for the device.
    wait: float = 0.0
    # Seconds of work it handed to a device that runs beside it.
    device: float = 0.0


@dataclass(frozen=True)
class Source:
    """The input pipeline: what an element takes to make, and whether it is made ahead of its use."""

    seconds: float
    # Elements made before they are asked for; with none, making one is waiting for it.
    ahead: int = 0
    # Threads at work at a time, and whether they hold Python's lock.
    threads: float = 1.0
    python: bool = False
    # The share of the time it was at work, while it was measured.
    duty: float = 0.0
    # Of the work on an element, the part of the slowest stage, and how often that stage is called for one.
    slow_share: float = 1.0
    slow_calls: float = 1.0


@dataclass(frozen=True)
class Program:
    """Everything the simulation knows."""

    steps: list[list[Piece]]
    step_s: float
    asynchronous: bool
    cores: int
    kernel_threads: int
    # The input as it is, and as it was while the pieces were measured beside it.
    source: Source | None = None
    measured: Source | None = None
    # Of the time inside eager ops and between them: running kernels, and the part of it any kernel takes.
    eager_kernels: float = 0.0
    eager_floor: float = 0.0
    # Of the time kernels took in a compiled call: what the quickest calls took.
    quick: float = 1.0
    # The Python of one call of a compiled function.
    call_s: float = 0.0
    # What a step's eager ops take to launch on an accelerator, one by one, from inside a graph.
    launches_s: float = 0.0


def of(record: Record) -> Program | None:
    """The program behind a record; None if it holds nothing to replay."""
    tables = record.tables.get("stepping") or []
    if not tables or tables[0]["steps"] < 2:
        return None
    phase = tables[0]
    measured = _steps(record.timeline) if record.timeline else []
    if len(measured) < 2:
        # A step of more spans than a window holds: the sums tell less, but they do tell.
        measured = _from_sums(record, phase)
    windows = (record.tables.get("windows") or [{}])[0]
    steps = _evenly(measured)
    steps = _stretched(steps, phase)
    step_s = phase["seconds"] / phase["steps"]
    asynchronous = bool(phase["asynchronous"])
    graph_s = max(1, windows.get("graph_ns", 0))
    steps = _usual_first_calls(steps, windows.get("graph_busy_ns", 0) / graph_s)
    if asynchronous:
        steps = [_with_device(step, (record.device.busy or 0.0) * step_s) for step in steps]
    else:
        steps = [_inside_graphs(step, windows) for step in steps]
    busy = windows.get("graph_busy_ns", 0)
    eager_s = max(1, windows.get("eager_ns", 0))
    source = _source(record, steps, step_s)
    inside = phase["eager_op_s"] / phase["eager_s"] if phase["eager_s"] else 0.0
    return Program(
        steps=steps,
        step_s=step_s,
        asynchronous=asynchronous,
        cores=int(phase["cores"]),
        kernel_threads=min(int(phase["kernel_threads"]), int(phase["cores"])),
        source=source,
        measured=source,
        eager_kernels=windows.get("eager_kernel_ns", 0) / eager_s * inside,
        eager_floor=windows.get("eager_floor_ns", 0) / eager_s * inside,
        quick=min(1.0, windows.get("graph_quick_ns", 0) / busy) if busy else 1.0,
        call_s=_call_s(steps, phase),
        launches_s=_launches_s(record, phase) if asynchronous else 0.0,
    )


def _steps(timeline: Mapping[str, Any]) -> list[list[Piece]]:
    """The spans of all windows, step by step."""
    sites = [(row["file"], row["line"]) for row in timeline["sites"]]
    steps = []
    for window in timeline["windows"]:
        host = next(lane["spans"] for lane in window["lanes"] if lane["name"] == "host")
        index = 0
        for start, end in window["steps"]:
            pieces, covered = [], 0.0
            while index < len(host) and (host[index][0] + host[index][1]) / 2 < end:
                first, last, account, site, name, wait = host[index]
                index += 1
                if last > start:
                    pieces.append(
                        Piece(account, last - first, sites[site] if site >= 0 else None, name, wait)
                    )
                    covered += last - first
            if end - start - covered > 0:
                pieces.append(Piece("python", end - start - covered))
            steps.append(pieces)
    return steps


def _from_sums(record: Record, phase: Mapping[str, Any]) -> list[list[Piece]]:
    """Steps made of what each account and each site took on average, as much apart as the steps were."""
    mean = phase["seconds"] / phase["steps"]
    left = {name: seconds / phase["steps"] for name, seconds in phase["accounts"].items()}
    pieces = []
    for account, table in (("sync", "syncs"), ("transfer", "copies"), ("checkpoint", "checkpoints")):
        for row in record.tables.get(table) or []:
            seconds = min(left.get(account, 0.0), row["seconds"] / phase["steps"])
            left[account] = left.get(account, 0.0) - seconds
            wait = min(seconds, row["wait_s"] / phase["steps"])
            pieces.append(Piece(account, seconds, (row["file"], row["line"]), wait=wait))
    pieces = [Piece(account, seconds) for account, seconds in left.items() if seconds > 0] + pieces
    times = record.step_times or [mean] * 8
    return [[replace(p, seconds=p.seconds * t / mean, wait=p.wait * t / mean) for p in pieces] for t in times]


def _evenly(steps: list[list[Piece]]) -> list[list[Piece]]:
    """At most so many steps, in runs of neighbours, spread over all that were kept."""
    run = 8
    runs = [steps[i : i + run] for i in range(0, len(steps), run)]
    wanted = max(1, _MAX_STEPS // run)
    if len(runs) > wanted:
        runs = [runs[i * len(runs) // wanted] for i in range(wanted)]
    return [step for group in runs for step in group]


def _stretched(steps: list[list[Piece]], phase: Mapping[str, Any]) -> list[list[Piece]]:
    """The steps with each account's mean as in the whole phase; what no window saw is spread over all of them."""
    seen: defaultdict[str, float] = defaultdict(float)
    for step in steps:
        for piece in step:
            seen[piece.account] += piece.seconds / len(steps)
    exact = {name: seconds / phase["steps"] for name, seconds in phase["accounts"].items()}
    # A stretch of eager ops holds the library's Python between them: the two are one account here.
    seen["eager"] += 0.0
    if seen["eager"] > 0:
        exact["eager"] = max(0.0, exact.get("eager", 0.0) + exact.get("dispatch", 0.0) - seen["dispatch"])
        exact["dispatch"] = seen["dispatch"]
    factors = {name: exact.get(name, 0.0) / seconds for name, seconds in seen.items() if seconds > 0}
    rest = [
        Piece(name, seconds)
        for name, seconds in exact.items()
        if seconds > 0 and seen.get(name, 0.0) <= seconds * 0.02 and name != "startup"
    ]
    for piece in rest:
        factors[piece.account] = 0.0

    def stretch(piece: Piece) -> Piece:
        factor = factors.get(piece.account, 1.0)
        return replace(piece, seconds=piece.seconds * factor, wait=piece.wait * factor)

    return [[stretch(piece) for piece in step] + rest for step in steps]


def _usual_first_calls(steps: list[list[Piece]], busy: float) -> list[list[Piece]]:
    """Split the first execution of a graph into a usual one and the getting ready, which is tracing."""
    usual: defaultdict[str, list[float]] = defaultdict(list)
    for step in steps:
        for piece in step:
            if piece.account == "graph" and not piece.name.endswith(_FIRST_CALL):
                usual[piece.name].append(piece.seconds)

    def split(piece: Piece) -> list[Piece]:
        if piece.account != "graph" or not piece.name.endswith(_FIRST_CALL):
            return [piece]
        name = piece.name.removesuffix(_FIRST_CALL)
        alone = statistics.median(usual[name]) if usual[name] else piece.seconds * busy
        rest = max(0.0, piece.seconds - alone)
        return [
            replace(piece, seconds=piece.seconds - rest, name=name),
            Piece("trace", rest, piece.site, name),
        ]

    return [[part for piece in step for part in split(piece)] for step in steps]


def _inside_graphs(step: list[Piece], windows: Mapping[str, Any]) -> list[Piece]:
    """A compiled call on the host's own processor: waiting for its input, starting, running kernels."""
    total = windows.get("graph_ns", 0)
    if not total:
        return step
    waiting = windows.get("graph_input_ns", 0) / total
    running = min(1.0 - waiting, windows.get("graph_busy_ns", 0) / total)
    pieces = []
    for piece in step:
        if piece.account != "graph":
            pieces.append(piece)
            continue
        if waiting > 0:
            pieces.append(replace(piece, account="input", seconds=piece.seconds * waiting))
        pieces.append(replace(piece, account="launch", seconds=piece.seconds * (1 - waiting - running)))
        pieces.append(replace(piece, account="compute", seconds=piece.seconds * running))
    return pieces


def _with_device(step: list[Piece], usual: float) -> list[Piece]:
    """Give what launches work the device's time: where a read waited, what it waited for; else the usual."""
    pieces, first, since, told = list(step), None, 0.0, False
    for index, piece in enumerate(step):
        if piece.account == "sync" and piece.wait > 0 and first is not None:
            pieces[first] = replace(pieces[first], device=since + piece.wait)
            first, since, told = None, 0.0, True
            continue
        if piece.account in ("graph", "eager") and first is None:
            first, since = index, 0.0
        since += piece.seconds
    if first is not None and not told:
        pieces[first] = replace(pieces[first], device=usual)
    return pieces


def _call_s(steps: list[list[Piece]], phase: Mapping[str, Any]) -> float:
    """The Python of one compiled call: as this run's calls took, else as so many eager ops."""
    calls = sum(piece.account in ("compute", "graph") for step in steps for piece in step)
    around = sum(p.seconds for s in steps for p in s if p.account in ("dispatch", "launch") and p.site)
    if calls:
        return around / calls
    outside = phase["eager_s"] - phase["eager_op_s"]
    return _OPS_PER_CALL * outside / phase["eager_ops"] if phase["eager_ops"] else 0.0


def _launches_s(record: Record, phase: Mapping[str, Any]) -> float:
    """Launching a step's kernels, as the modelled device's profile says; as any profile says of another's."""
    known = [profile for name, profile in PROFILES.items() if f", {name} profile" in record.device.name]
    launch_us = known[0].launch_us if known else PROFILES["a100"].launch_us
    return float(phase["eager_ops"] / phase["steps"] * launch_us * 1e-6)


# A call of a compiled function binds, looks up and executes in about as much Python as this many eager ops.
_OPS_PER_CALL = 6


def _source(record: Record, steps: list[list[Piece]], step_s: float) -> Source | None:
    """The pipeline that is waited for, as the run and the profiler's windows show it."""
    asked = [[p for p in step if p.account == "input" and p.name != FIRST_ELEMENT] for step in steps]
    waits = [sum(p.seconds for p in pieces) for pieces in asked]
    elements = statistics.fmean(len(pieces) for pieces in asked)
    rows = record.tables.get("stages") or []
    if sum(wait > 0 for wait in waits) * 2 < len(waits):
        # Now and then an iterator is made or taken down: that is no pipeline at work.
        return None
    mean = statistics.fmean(waits)
    work = {row["path"]: row["self_s"] for row in rows if _stage(row["path"]) not in _BUFFERS}
    ahead = any("::Prefetch" in path or "::Parallel" in path for path in work) or not rows
    slow = max(work, key=lambda path: work[path], default="")
    total = sum(work.values())
    calls = {row["path"]: row["calls"] for row in rows}
    roots = max(1, min((calls[path] for path in work), default=1))
    parallel = any("Parallel" in path or "MapAndBatch" in path for path in work)
    window_s = (record.tables.get("windows") or [{}])[0].get("window_ns", 0) / 1e9
    # The median: an epoch's beginning is long and rare.
    starved = statistics.median(waits) > _STARVED * step_s
    made = mean if not ahead else step_s if starved else min(step_s, total / roots if total else 0.0)
    made /= max(1.0, elements)
    return Source(
        seconds=made,
        ahead=8 if ahead else 0,
        threads=float(record.tables["stepping"][0]["cores"]) if parallel else 1.0,
        python=any("Generator" in path for path in work) or _runs_python(record),
        duty=0.0 if not ahead else 1.0 if starved else min(1.0, total / window_s if window_s else 0.0),
        slow_share=work[slow] / total if total else 1.0,
        slow_calls=max(1.0, calls.get(slow, 1) / roots),
    )


def _runs_python(record: Record) -> bool:
    pipelines = record.tables.get("pipelines") or []
    return any(stage.get("python") for row in pipelines for stage in row["stages"])


def _stage(path: str) -> str:
    return path.rsplit("::", 1)[-1].removesuffix("V2").removesuffix("V3")
