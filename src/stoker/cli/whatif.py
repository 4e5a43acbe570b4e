"""Predict a saved run without a finding, on another device, with a larger batch, or on N workers.

Nothing runs. Prices come from the run's experiments, or from a model that replays the recorded steps and states its
assumptions.

    stoker whatif                                   # every finding, and in which order to repair them
    stoker whatif --without sync-in-loop --without train.py:42
    stoker whatif 20261115-2107 --device-profile a100 --batch 4x --workers 8
    stoker whatif --workers 1024 --mtbf 4h          # efficiency and checkpoint interval of a large job
"""

from __future__ import annotations

import argparse
import dataclasses
import re
from pathlib import Path
from typing import Any

from stoker import config, units
from stoker.cli._options import add_json, local_path
from stoker.cli._records import find_record
from stoker.doctor.pricing import fleet, prices, scaling
from stoker.doctor.pricing import program as programs
from stoker.doctor.pricing.claims import has_repair
from stoker.doctor.pricing.scaling import Scale
from stoker.doctor.replay.program import Program
from stoker.doctor.report import whatif as report
from stoker.doctor.software_gpu import profiles
from stoker.doctor.stall import stalls
from stoker.errors import RecordError, UsageError
from stoker.printing import print_json
from stoker.records import Finding, Record, SteppingRow
from stoker.tracking.store import record_files

# Sizes of jobs that are shown beside the one that was asked for.
_SIZES = (8, 64, 1024)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options `[ID] [--without WHAT]... [--device-profile P] [--batch 4x] [--workers N] [--json]`."""
    parser.add_argument(
        "id", type=local_path, nargs="?", help="a run's id, the beginning of one, latest, or a record's file"
    )
    parser.add_argument(
        "--without", action="append", default=[], metavar="WHAT", help="a kind, FILE:LINE, or all; repeatable"
    )
    parser.add_argument(
        "--device-profile", metavar="NAME", help="t4, v100, a100, h100, or a profile in pyproject.toml"
    )
    parser.add_argument("--batch", metavar="4x", help="make the batch this many times as large")
    parser.add_argument(
        "--workers", metavar="N", help="N replicas that exchange their gradients at every step"
    )
    parser.add_argument("--bandwidth", metavar="GB/s", help="between replicas; the device's bus by default")
    parser.add_argument("--latency", metavar="TIME", help="with --workers: the latency of a message (50us)")
    parser.add_argument(
        "--mtbf", metavar="TIME", help="with --workers: mean time between failures of such a job, such as 4h"
    )
    parser.add_argument(
        "--checkpoint-cost", metavar="TIME", help="with --mtbf: how long saving takes (default: as measured)"
    )
    parser.add_argument(
        "--restart-cost", metavar="TIME", help="with --mtbf: time from a failure until all workers run again"
    )
    add_json(parser, "as JSON, to stdout")


def run(args: argparse.Namespace) -> int:
    """Replay the run, and report the result."""
    record = record_files.read(find_record(args.id))
    program, phase = programs.of(record), record.tables.stepping_phase
    if program is None or phase is None:
        raise RecordError(
            f"the run {record.id} has no spans to replay (an older Stoker wrote it, or it has too few steps): "
            "run it again with `stoker run`"
        )
    chosen = _choose_findings(record, args.without)
    scale = _scale(record, phase, args)
    if args.mtbf or args.checkpoint_cost or args.restart_cost:
        return _fleet(record, phase, scale, args)
    if not chosen and not scale.uncertain and scale.workers == 1:
        rows, findings = (
            _price_each_finding(record, program),
            [f for f in record.findings if has_repair(f.kind)],
        )
    else:
        rows, findings = [_answer(record, program, chosen, scale)], chosen
    answer = {
        "run": record.id,
        "program": record.program,
        "measured": {"steps_per_s": record.steps_per_s, "examples_per_s": record.examples_per_s},
        "rows": rows,
        "assumptions": [*prices.assumptions(findings), *scale.assumptions()],
    }
    if args.json:
        print_json(answer)
    else:
        report.show(answer)
    return 0


def _choose_findings(record: Record, wanted: list[str]) -> list[Finding]:
    """Return the findings to leave out."""
    chosen: list[Finding] = []
    priced = [f for f in record.findings if has_repair(f.kind)]
    for what in wanted:
        found = priced if what == "all" else [f for f in priced if _is(f, what)]
        if not found:
            there = ", ".join(dict.fromkeys(f"{f.kind} at {f.file}:{f.line}" for f in priced)) or "nothing"
            unknown = what not in stalls() and not re.search(r":\d+$", what)
            problem = f"no kind {what!r}" if unknown else f"the run has no {what}"
            raise UsageError(f"{problem}: it found {there}")
        chosen += [f for f in found if f not in chosen]
    return chosen


def _is(finding: Finding, what: str) -> bool:
    if what in (finding.kind, finding.code):
        return True
    file, _, line = what.rpartition(":")
    same_file = finding.file == file or finding.file.endswith("/" + file)
    return bool(file) and same_file and line == str(finding.line)


def _scale(record: Record, phase: SteppingRow, args: argparse.Namespace) -> Scale:
    own = config.load(Path()).device_profiles
    device = profiles.resolve(args.device_profile, own) if args.device_profile else None
    measured_on = profiles.of_device(record.device.name)
    workers = (
        _number(args.workers, "--workers", r"[1-9]\d*", "a whole number such as 8") if args.workers else 1.0
    )
    if workers > 1 and not phase.gradient_bytes:
        raise UsageError(f"--workers: run {record.id} does not record the size of its weights")
    bus = device or measured_on or profiles.PROFILES["a100"]
    bandwidth = bus.bus_bandwidth * bus.bus_efficiency
    if args.bandwidth:
        bandwidth = _number(args.bandwidth, "--bandwidth", r"\d+(\.\d+)?", "GB a second such as 25") * 1e9
    return Scale(
        device=device,
        measured_on=measured_on,
        batch=_number(args.batch, "--batch", r"\d+(\.\d+)?x", "a factor such as 4x") if args.batch else 1.0,
        workers=int(workers),
        gradient_bytes=phase.gradient_bytes,
        bandwidth=bandwidth,
        latency_s=_seconds("--latency", args.latency) if args.latency else scaling.LATENCY_S,
    )


def _fleet(record: Record, phase: SteppingRow, scale: Scale, args: argparse.Namespace) -> int:
    """Predict a job of many workers that fail."""
    if not args.mtbf or scale.workers < 2:
        raise UsageError("--mtbf needs --workers, such as --workers 1024 --mtbf 4h")
    if args.without or args.device_profile or args.batch:
        raise UsageError(
            "--mtbf simulates the job with the recorded run: leave out --without, --batch and the device"
        )
    made = fleet.fleet_of(
        record,
        phase,
        scale.bandwidth,
        _seconds("--mtbf", args.mtbf),
        scale.workers,
        _seconds("--checkpoint-cost", args.checkpoint_cost) if args.checkpoint_cost else None,
        _seconds("--restart-cost", args.restart_cost) if args.restart_cost else None,
        scale.latency_s,
    )
    sizes = sorted({*_SIZES, scale.workers})
    answer = {
        "run": record.id,
        "program": record.program,
        "jobs": [dataclasses.asdict(fleet.outlook(made, size)) for size in sizes],
        "assumptions": made.assumptions(),
    }
    if args.json:
        print_json(answer)
    else:
        report.show_fleet(answer)
    return 0


def _seconds(option: str, text: str) -> float:
    seconds = units.seconds_of(text)
    if not seconds:
        raise UsageError(f"{option} {text!r}: give a time such as 30s or 4h")
    return seconds


def _number(text: str, option: str, form: str, example: str) -> float:
    if not re.fullmatch(form, text) or not float(text.rstrip("x")):
        raise UsageError(f"{option} {text!r}: give {example}")
    return float(text.rstrip("x"))


def _price_each_finding(record: Record, program: Program) -> list[dict[str, Any]]:
    """Price each finding by itself, in the order of repair, then all together."""
    findings = [f for f in record.findings if has_repair(f.kind)]
    rows = []
    done: list[Finding] = []
    for place in prices.order(program, [prices.with_price(f, program) for f in findings]):
        finding = next(f for f in findings if f.key == place.key)
        done.append(finding)
        title = f"{len(done)}. without {finding.kind} {finding.file}:{finding.line}"
        rows.append(_row(record, title, prices.what_if(program, [finding]), 1.0))
    if len(done) > 1:
        rows.append(_row(record, "all of them", prices.what_if(program, done), 1.0))
    return rows


def _answer(record: Record, program: Program, chosen: list[Finding], scale: Scale) -> dict[str, Any]:
    parts = [f"without {f.kind} {f.file}:{f.line}" for f in chosen]
    parts += [f"on {scale.device.name}"] if scale.device else []
    parts += [f"batch {scale.batch:g}x"] if scale.batch != 1 else []
    parts += [f"{scale.workers} replicas"] if scale.workers > 1 else []
    factor = scaling.examples_factor(scale)
    answer = prices.what_if(
        program, chosen, lambda p, draw: scaling.scale_program(p, scale, draw), scale.uncertain, factor
    )
    return _row(record, ", ".join(parts), answer, factor)


def _row(record: Record, what: str, answer: Any, factor: float) -> dict[str, Any]:
    steps, examples = record.steps_per_s, record.examples_per_s
    return {
        "what": what,
        "speedup": answer.speedup,
        "low": answer.low,
        "high": answer.high,
        "basis": answer.basis,
        "steps_per_s": None if steps is None else round(steps * answer.speedup / factor, 3),
        "examples_per_s": None if examples is None else round(examples * answer.speedup, 3),
    }
