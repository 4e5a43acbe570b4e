"""Run a program and show where every second went.

Stoker does not change the program: same output, same exit code. When the program ends, however it ends, the ledger is
printed to stderr and kept under .stoker/runs/.

    stoker run train.py --epochs 3
    stoker run --html run.html train.py
    stoker run -m package.module args...
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stoker import config
from stoker.cli._options import add_experiments, add_program, local_path, read_program
from stoker.doctor.measure import supervise
from stoker.doctor.measure.experiment_options import ExperimentOptions
from stoker.doctor.measure.launch import LaunchedProgram, Target
from stoker.doctor.report import console, output
from stoker.doctor.report.live import LiveLine, has_rows
from stoker.errors import UsageError
from stoker.printing import print_note
from stoker.records import Record


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options; they come before the program, and everything after it belongs to the program."""
    parser.add_argument(
        "--json", type=local_path, metavar="PATH", help="also write the record to PATH; - is stdout"
    )
    parser.add_argument(
        "--html", type=local_path, metavar="PATH", help="also write a page of the run to PATH"
    )
    parser.add_argument("--quiet", action="store_true", help="save the record but print no ledger")
    parser.add_argument("--device", metavar="DEVICE", help="software-gpu, or software-gpu:N for N of them")
    parser.add_argument(
        "--device-memory", metavar="SIZE", default="8GiB", help="memory of each device, such as 8GiB"
    )
    parser.add_argument(
        "--device-profile",
        metavar="NAME",
        default="a100",
        help="t4, v100, a100, h100, or one of [tool.stoker.device-profiles]",
    )
    parser.add_argument(
        "--memory", action="store_true", help="also print who owns the device's memory at its peak"
    )
    parser.add_argument(
        "--store",
        metavar="URL",
        help="the store (STOKER_STORE, [tool.stoker], .stoker/stoker.db), or off for none",
    )
    add_experiments(
        parser,
        "how long repairs may be timed when the program has ended, such as 60s, or off (a tenth of the run, from 2 s "
        "to 20 s)",
    )
    parser.add_argument(
        "--keep-step",
        action="store_true",
        help="also keep the recorded steps with their data beside the record: `stoker price` times them again",
    )
    add_program(parser)


def run(args: argparse.Namespace) -> int:
    """Check the request, run the program, and report."""
    target = Target(*read_program(args, "stoker run train.py, or stoker run -m package.module"))
    target.check()
    if args.html:
        from stoker.doctor.report.page import document

        document.check(args.html)
    experiments = ExperimentOptions(args.experiments, announced=not args.quiet, keeps_step=args.keep_step)
    launched = LaunchedProgram(target, _device(args), args.store, experiments)
    shown = not args.quiet and has_rows(sys.stderr)
    with _live_line(wanted=shown) as draw:

        def tick() -> None:
            record = launched.look(drawn=shown)
            if record is not None:
                draw(record)

        status = supervise.run(launched.command, launched.environment, tick)
    _report(launched.finish(supervise.exit_code_of(status)), launched.path, args)
    return supervise.end_like_program(status)


def _device(args: argparse.Namespace) -> dict[str, Any] | None:
    """Return the software GPU that was asked for, built if necessary; None if none was asked for."""
    if args.device is None:
        return None
    # This is imported late, as is the page below: most runs need neither, and every import delays the program.
    from stoker.doctor import software_gpu
    from stoker.doctor.software_gpu import profiles

    name, _, count = args.device.partition(":")
    if name != "software-gpu" or not (count or "1").isdigit():
        raise UsageError(f"no device {args.device!r}: use software-gpu, or software-gpu:2 for two of them")
    profile = profiles.resolve(args.device_profile, config.load(Path()).device_profiles)
    settings = software_gpu.settings_of(int(count or 1), args.device_memory, profile)
    software_gpu.ensure_built()
    return {
        "count": settings.count,
        "memory": settings.memory,
        "profile": dataclasses.asdict(settings.profile),
    }


@contextmanager
def _live_line(wanted: bool) -> Iterator[Callable[[Record], None]]:
    """Yield a function that draws the record at the bottom of the terminal whenever the program saves it."""
    if not wanted:
        yield lambda record: None
        return
    line = LiveLine(sys.stderr)
    line.open()
    try:
        yield line.draw
    finally:
        line.close()


def _report(record: Record, path: Path, args: argparse.Namespace) -> None:
    if not args.quiet:
        console.show(record, path)
    if args.memory:
        console.show_memory(record)
    if args.json:
        output.write_record(args.json, record)
    if args.html:
        from stoker.doctor.report.page import document

        output.write(args.html, document.page(record))
        if not args.quiet:
            print_note(f"page: {args.html}", prefix="")
