"""Turn a record's spans, or else its sums, into steps: the main thread's pieces of work.

The spans of profiler windows are scaled so that each account's sum is that of the whole stepping phase: windows show
the structure, and the sums are exact.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import replace
from itertools import accumulate

from stoker.doctor.probes.graph_calls import FIRST_CALL
from stoker.doctor.replay.pieces import Piece, Site
from stoker.records import Record, SteppingRow, Timeline, WindowSums

# More steps than this add nothing new and take time.
_MAX_STEPS = 96

# Accounts that queue work on a device.
_LAUNCHES = frozenset({"graph", "eager"})
# Parts of the paths of installed packages. Their lines are not the user's, even if spans name them.
_INSTALLED = ("site-packages/", "dist-packages/")


def from_spans(timeline: Timeline) -> list[list[Piece]]:
    """Return the steps of all windows, made of their spans."""
    sites: list[Site | None] = [
        None if any(part in site.file for part in _INSTALLED) else (site.file, site.line)
        for site in timeline.sites
    ]
    steps = []
    for window in timeline.windows:
        host = window.host
        index = 0
        for start, end in window.steps:
            pieces, covered = [], 0.0
            while index < len(host) and (host[index].start + host[index].end) / 2 < end:
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


def from_sums(record: Record, phase: SteppingRow) -> list[list[Piece]]:
    """Return steps made of the mean time of each account and site, scaled to the times of the recorded steps."""
    mean = phase.seconds / phase.steps
    left = {name: seconds / phase.steps for name, seconds in phase.accounts.items()}
    pieces = []
    tables = record.tables
    for account, rows in (
        ("sync", tables.syncs),
        ("transfer", tables.copies),
        ("checkpoint", tables.checkpoints),
    ):
        for row in rows:
            seconds = min(left.get(account, 0.0), row.seconds / phase.steps)
            left[account] = left.get(account, 0.0) - seconds
            wait = min(seconds, row.wait_s / phase.steps)
            pieces.append(Piece(account, seconds, (row.file or "", row.line or 0), wait=wait))
    pieces = [Piece(account, seconds) for account, seconds in left.items() if seconds > 0] + pieces
    times = record.step_times or [mean] * 8
    return [[replace(p, seconds=p.seconds * t / mean, wait=p.wait * t / mean) for p in pieces] for t in times]


def spread_evenly(steps: list[list[Piece]]) -> list[list[Piece]]:
    """Return at most `_MAX_STEPS` steps, in groups of neighbours that are spread over all recorded ones."""
    run = 8
    runs = [steps[i : i + run] for i in range(0, len(steps), run)]
    wanted = max(1, _MAX_STEPS // run)
    if len(runs) > wanted:
        runs = [runs[i * len(runs) // wanted] for i in range(wanted)]
    return [step for group in runs for step in group]


def fit_to_phase(steps: list[list[Piece]], phase: SteppingRow) -> list[list[Piece]]:
    """Scale each account of the steps to its mean in the whole phase. Spread what no window saw over all steps."""
    seen: defaultdict[str, float] = defaultdict(float)
    for step in steps:
        for piece in step:
            seen[piece.account] += piece.seconds / len(steps)
    exact = {name: seconds / phase.steps for name, seconds in phase.accounts.items()}
    # A stretch of eager ops includes the library's Python between them, so the two accounts are treated as one.
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

    def scale_piece(piece: Piece) -> Piece:
        factor = factors.get(piece.account, 1.0)
        return replace(piece, seconds=piece.seconds * factor, wait=piece.wait * factor)

    return [[scale_piece(piece) for piece in step] + rest for step in steps]


def with_usual_first_calls(steps: list[list[Piece]], busy: float) -> list[list[Piece]]:
    """Split the first execution of a graph into a usual one and its preparation, which counts as tracing."""
    usual: defaultdict[str, list[float]] = defaultdict(list)
    for step in steps:
        for piece in step:
            if piece.account == "graph" and not piece.name.endswith(FIRST_CALL):
                usual[piece.name].append(piece.seconds)

    def split(piece: Piece) -> list[Piece]:
        if piece.account != "graph" or not piece.name.endswith(FIRST_CALL):
            return [piece]
        name = piece.name.removesuffix(FIRST_CALL)
        alone = statistics.median(usual[name]) if usual[name] else piece.seconds * busy
        rest = max(0.0, piece.seconds - alone)
        return [
            replace(piece, seconds=piece.seconds - rest, name=name),
            Piece("trace", rest, piece.site, name),
        ]

    return [[part for piece in step for part in split(piece)] for step in steps]


def inside_graphs(step: list[Piece], windows: WindowSums) -> list[Piece]:
    """Split compiled calls on the host's processor into waiting for input, exchanging, starting and running kernels."""
    total = windows.graph_ns
    if not total:
        return step
    waiting = windows.graph_input_ns / total
    exchanging = windows.graph_communication_ns / total
    running = min(1.0 - waiting - exchanging, windows.graph_busy_ns / total)
    pieces = []
    for piece in step:
        if piece.account != "graph":
            pieces.append(piece)
            continue
        if waiting > 0:
            pieces.append(replace(piece, account="input", seconds=piece.seconds * waiting))
        if exchanging > 0:
            pieces.append(replace(piece, account="communication", seconds=piece.seconds * exchanging))
        rest = 1 - waiting - exchanging - running
        pieces.append(replace(piece, account="launch", seconds=piece.seconds * rest))
        pieces.append(replace(piece, account="compute", seconds=piece.seconds * running))
    return pieces


def with_device(steps: list[list[Piece]], busy_s: float | None) -> list[list[Piece]]:
    """Give each piece that launches work its part of the device's time, so that reads wait as long as they did.

    A read shows when the device finished its work, but not for how long it had been busy. That is `busy_s` of a step,
    and at least the wait. If `busy_s` is unknown, the device counts as busy from the first launch until the read got
    its value. A read may also wait for work that the step before launched.
    """
    pieces = [piece for step in steps for piece in step]
    launched = sum(piece.seconds for piece in pieces if piece.account in _LAUNCHES)
    share = busy_s * len(steps) / launched if busy_s is not None and launched > 0 else 0.0
    since: list[int] = []
    for index, piece in enumerate(pieces):
        if piece.account in _LAUNCHES:
            pieces[index] = replace(piece, device=share * piece.seconds)
            since.append(index)
        elif piece.account == "sync" and piece.wait > 0 and since:
            first, last = since[0], since[-1]
            between = sum(p.seconds for p in pieces[last + 1 : index])
            least = piece.wait
            if busy_s is None:
                least += sum(p.seconds for p in pieces[first:index])
            missing = max(0.0, least - sum(pieces[i].device for i in since))
            pieces[first] = replace(pieces[first], device=pieces[first].device + missing)
            pieces[last] = replace(pieces[last], tail=between + piece.wait)
            since = []
    ends = list(accumulate(len(step) for step in steps))
    return [pieces[end - len(step) : end] for end, step in zip(ends, steps, strict=True)]
