"""Turn a saved record, without any other information, into a program that can be replayed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from stoker.doctor.pricing import undisturbed
from stoker.doctor.pricing.claims import (
    has_repair,
    release_foreign_ops,
    repair_of,
    share_out,
    with_marked_parts,
)
from stoker.doctor.pricing.feeding import source_of, with_elements
from stoker.doctor.pricing.recorded_steps import (
    fit_to_phase,
    from_spans,
    from_sums,
    inside_graphs,
    spread_evenly,
    with_device,
    with_usual_first_calls,
)
from stoker.doctor.probes.pipelines import FIRST_ELEMENT
from stoker.doctor.replay.pieces import Piece, join_alike, python_s
from stoker.doctor.replay.program import Program, TimedRepair, is_element
from stoker.doctor.replay.simulation import Draw, seconds_per_step
from stoker.doctor.software_gpu.profiles import PROFILES, of_device
from stoker.records import Finding, FindingKey, Record, SteppingRow, WindowSums

# A call of a compiled function takes about as much Python as this many eager ops.
_OPS_PER_CALL = 6
# The quickest calls take at least this part of the others' time, unless the others lost their processor.
_QUICKEST = 0.5
# If all steps are alike, their mean exceeds a marked step by no more than this part of it; the second figure is for a
# busy machine.
_NOISE, _MOST_NOISE = 0.1, 0.7
# The replay of an unchanged run matches the run to this precision.
_EXACT = 0.001
_MOST_PADDINGS = 50
# The account of a step's time that the replay does not explain.
UNEXPLAINED = "unexplained"


def of(record: Record) -> Program | None:
    """Return the program of a record, or None if the record holds nothing to replay."""
    phase = record.tables.stepping_phase
    if phase is None or phase.steps < 2:
        return None
    phase = undisturbed.without_teardowns(phase, record.findings)
    left = undisturbed.part_left(phase)
    phase = undisturbed.take_part(phase, left)
    measured = from_spans(record.timeline) if record.timeline else []
    if len(measured) < 2:
        # A step has more spans than a window holds. The sums say less, but must do.
        measured = from_sums(record, phase)
    windows = record.tables.sums
    steps = undisturbed.without_account(spread_evenly(measured), phase)
    steps = with_elements(fit_to_phase(steps, phase))
    step_s = phase.seconds / phase.steps
    asynchronous = phase.asynchronous
    graph_s = max(1, windows.graph_ns)
    steps = with_usual_first_calls(steps, windows.graph_busy_ns / graph_s)
    if asynchronous:
        busy_s = None if record.device.busy is None else record.device.busy * step_s
        steps = with_device(steps, busy_s)
    else:
        steps = [inside_graphs(step, windows) for step in steps]
    busy = windows.graph_busy_ns
    source = source_of(record, steps, step_s, left)
    stretch = stretch_of(record, phase.cores)
    eager_kernels, eager_floor = _eager_kernels(windows, phase, stretch)
    program = Program(
        steps=steps,
        step_s=step_s,
        asynchronous=asynchronous,
        cores=phase.cores,
        kernel_threads=min(phase.kernel_threads, phase.cores),
        source=source,
        measured=source,
        eager_kernels=eager_kernels,
        python_s=python_s(steps, eager_kernels),
        eager_floor=eager_floor,
        eager_wide=windows.eager_wide_ns / max(1, windows.eager_calm_ns),
        quick=min(1.0, max(_QUICKEST / stretch, windows.graph_quick_ns * stretch / busy)) if busy else 1.0,
        call_s=_call_s(steps, phase),
        launches_s=_launches_s(record, phase) if asynchronous else 0.0,
        count=phase.steps,
        timed=_read_timed(record, 1.0 if phase.cpu_s else stretch, step_s, _noise(left)),
        undisturbed=left,
        verified=tuple(record.tables.verified),
    )
    program = share_out(release_foreign_ops(calibrate(program), record.findings), record.findings)
    return _join_alike_pieces(with_marked_parts(program, record.findings), record.findings)


def _join_alike_pieces(program: Program, findings: Sequence[Finding]) -> Program:
    """Return the program with alike pieces joined, which makes replaying it many times quicker.

    A device that works alongside the host cares about the order of pieces.
    """
    if program.asynchronous:
        return program
    repairs = [repair_of(finding.kind) for finding in findings if has_repair(finding.kind)]
    apart = frozenset[str]().union(*(repair.looks_at_single_pieces_of for repair in repairs))
    return program.with_steps(lambda step: join_alike(step, is_element, apart))


def _noise(left: float) -> float:
    """Return how far the mean of steps that are all alike may exceed a marked step, as a share of that step.

    Other programs also slow down steps that they do not interrupt: they share the caches and each processor.
    """
    return min(_MOST_NOISE, max(_NOISE, 1 / left - 1)) if left > 0 else _MOST_NOISE


def _read_timed(record: Record, stretch: float, step_s: float, noise: float) -> dict[FindingKey, TimedRepair]:
    """Return the timed repairs, with their times on a machine as busy as while the program ran."""
    found = {}
    for row in record.tables.experiments:
        if not row.repaired_s:
            continue
        slower, unknown = stretch, 0.0
        replaces: tuple[float, ...] = ()
        if row.step_s:
            mean_s = statistics.fmean(row.step_s)
            # The time of steps beyond that of a marked one comes after only some steps, and stays, unless it is noise.
            beyond_s = max(0.0, step_s - mean_s)
            stays_s = beyond_s * min(1.0, max(0.0, (beyond_s / mean_s - noise) / noise))
            # The lower quartile, since a busy machine also slows down steps that it does not interrupt. Marking costs
            # time, too, which is not in the mean of all steps.
            usual_s = min(sorted(row.step_s)[len(row.step_s) // 4], step_s)
            slower = step_s / (usual_s + stays_s)
            unknown = (beyond_s - stays_s) * slower
            # The share over all steps together, so that rare work counts as often as it happens.
            mean = sum(row.own_s) / sum(row.step_s)
            usual = statistics.median(own / step for own, step in zip(row.own_s, row.step_s, strict=True))
            shares = sorted(
                min(1.0, own / step * mean / usual) if usual else 0.0
                for own, step in zip(row.own_s, row.step_s, strict=True)
            )
            replaces = tuple(share * usual_s * slower for share in shares)
        rounds = tuple(sorted(seconds * slower for seconds in row.repaired_s))
        found[row.key] = TimedRepair(rounds, row.covers, replaces, unknown, tuple(row.within))
    return found


def calibrate(program: Program) -> Program:
    """Return the program, adjusted so that its unchanged replay takes as long as the measured step.

    Time that the replay leaves out is added as time that no repair removes. If the replay is too slow, the device and
    the input are made quicker; if this is not enough, everything is.
    """
    measured_s = program.step_s
    first = seconds_per_step(program, Draw())
    if measured_s <= 0:
        return program
    off = abs(first / measured_s - 1)
    if first > measured_s * (1 + _EXACT):
        low, high = 0.0, 1.0
        for _ in range(20):
            factor = (low + high) / 2
            slow = seconds_per_step(_beside_quicker(program, factor), Draw()) > measured_s
            low, high = (low, factor) if slow else (factor, high)
        program = _beside_quicker(program, low)
    now = seconds_per_step(program, Draw())
    if now > measured_s * (1 + _EXACT):
        factor = measured_s / now
        steps = [[_shorten(piece, factor) for piece in step] for step in program.steps]
        program = replace(program, steps=steps)
    elif now < measured_s:
        program = _pad(program, measured_s, now)
    return replace(program, unexplained=off)


def _pad(program: Program, measured_s: float, now: float) -> Program:
    """Return the program with enough unexplained time added that a step takes as long as measured.

    This may take several rounds, since the added time may at first overlap with a wait for the device.
    """
    added, padded = 0.0, program
    for _ in range(_MOST_PADDINGS):
        if now >= measured_s * (1 - _EXACT):
            break
        added += measured_s - now
        padded = replace(program, steps=[[*step, *_rest(program, added)] for step in program.steps])
        now = seconds_per_step(padded, Draw())
    return padded


def _rest(program: Program, seconds: float) -> list[Piece]:
    """Return pieces for the time the replay left out: waits for an input that mostly kept up, and unexplained time."""
    if program.source is None or not program.source.ahead:
        return [Piece(UNEXPLAINED, seconds)]
    waits = statistics.fmean(sum(p.seconds for p in step if is_element(p)) for step in program.steps)
    late = min(waits, seconds)
    return [Piece("input", late, name=FIRST_ELEMENT), Piece(UNEXPLAINED, seconds - late)]


def _beside_quicker(program: Program, factor: float) -> Program:
    """Return the program with the device and the input taking only this share of their time."""

    def change(piece: Piece) -> Piece:
        return replace(piece, device=piece.device * factor, tail=piece.tail * factor)

    source = program.source
    if source is not None and source.ahead:
        source = replace(source, seconds=source.seconds * factor)
    steps = [[change(piece) for piece in step] for step in program.steps]
    return replace(program, steps=steps, source=source, measured=source)


def _shorten(piece: Piece, factor: float) -> Piece:
    return replace(
        piece,
        seconds=piece.seconds * factor,
        wait=piece.wait * factor,
        device=piece.device * factor,
        tail=piece.tail * factor,
    )


def stretch_of(record: Record, cores: int) -> float:
    """Return the factor by which other processes slowed the main thread down, or 1 if it is unknown.

    The thread also waits for processors that other threads of its program have. Other processes can only have had what
    these leave.
    """
    windows = record.timeline.windows if record.timeline else []
    wall = sum(window.cpu_wall_s for window in windows)
    delayed = sum(window.delayed_s for window in windows)
    left_over = max(0.0, cores * wall - sum(window.cpu_s for window in windows))
    delayed = min(delayed, left_over)
    return wall / (wall - delayed) if 0 < delayed < wall else 1.0


def _eager_kernels(windows: WindowSums, phase: SteppingRow, stretch: float) -> tuple[float, float]:
    """Return two shares of eager time, inside ops and between them: that of kernels, and that of empty ones.

    Kernels count with their undisturbed times, stretched like the main thread: on a busy machine, the few that lose
    their processor in the windows would dominate the sum.
    """
    seen = windows.eager_kernels
    if not seen or not phase.eager_s or not phase.eager_ops:
        return 0.0, 0.0
    kernels = windows.eager_calm_ns or windows.eager_kernel_ns
    whole = phase.eager_s * 1e9 / phase.eager_ops / stretch
    return min(1.0, kernels / seen / whole), min(1.0, windows.eager_floor_ns / seen / whole)


def _call_s(steps: list[list[Piece]], phase: SteppingRow) -> float:
    """Return the Python seconds of one compiled call: from this run's calls, or else from those of its eager ops."""
    calls = sum(piece.account in ("compute", "graph") for step in steps for piece in step)
    around = sum(p.seconds for s in steps for p in s if p.account == "dispatch" and p.site)
    if calls:
        return around / calls
    outside = phase.eager_s - phase.eager_op_s
    return _OPS_PER_CALL * outside / phase.eager_ops if phase.eager_ops else 0.0


def _launches_s(record: Record, phase: SteppingRow) -> float:
    """Return the seconds to launch a step's kernels, from the modelled device's profile or else from a default one."""
    profile = of_device(record.device.name) or PROFILES["a100"]
    return float(phase.eager_ops / phase.steps * profile.launch_us * 1e-6)
