"""Tell how much device memory a program needs, and which batch fits, before it runs on a GPU.

The program's first steps run on the software GPU at batches of 2, 4 and 8 rows, and again with each change that may
save memory. Then the program is stopped. The batch is changed where the program calls Dataset.batch or fit.

    stoker memory --device-memory 16GiB train.py --epochs 3
    stoker memory --device-profile t4 --batch 256 train.py
    stoker memory --batch-arg=--batch-size train.py --batch-size 64    # the program's own option
    stoker memory --batch-arg BATCH train.py                           # BATCH = 64 in the program
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stoker import config
from stoker.cli._options import add_json, add_program, read_program
from stoker.doctor.forecast.answer import ForecastOptions, make_forecast
from stoker.doctor.forecast.starting import ProgramRunner
from stoker.doctor.measure.launch import Target
from stoker.doctor.software_gpu import ensure_built, profiles
from stoker.doctor.software_gpu.activation import parse_memory
from stoker.errors import UsageError
from stoker.printing import print_json, print_note
from stoker.units import seconds_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options; they come before the program, and everything after it belongs to the program."""
    device = parser.add_mutually_exclusive_group()
    device.add_argument(
        "--device-memory",
        metavar="SIZE",
        help="how much of the device's memory TensorFlow gets, such as 16GiB",
    )
    device.add_argument(
        "--device-profile",
        metavar="NAME",
        help="t4, v100, a100, h100, or one of [tool.stoker.device-profiles] with a memory size",
    )
    parser.add_argument("--batch", type=_rows, metavar="ROWS", help="the batch (default: the program's own)")
    parser.add_argument(
        "--batch-arg",
        metavar="NAME",
        help="what sets the batch: an option of the program (--batch-arg=--batch-size), or a name that its file sets",
    )
    parser.add_argument(
        "--no-what-if", action="store_true", help="measure no changes, only the program as it is"
    )
    parser.add_argument(
        "--timeout", type=_seconds, default=600.0, metavar="TIME", help="the time limit of each run (10m)"
    )
    add_json(parser)
    add_program(parser)


def run(args: argparse.Namespace) -> int:
    """Check the request, measure, and print the result."""
    target = Target(*read_program(args, "stoker memory train.py, or stoker memory -m package.module"))
    target.check()
    if target.is_module and args.batch_arg and not args.batch_arg.startswith("-"):
        raise UsageError(
            "--batch-arg takes a name at the top of a file: give the program as a file, not with -m"
        )
    options = ForecastOptions(_memory(args), args.batch, args.batch_arg, not args.no_what_if)
    ensure_built()
    forecast = make_forecast(ProgramRunner(target, args.timeout), options, print_note)
    if args.json:
        print_json(forecast.as_json())
    else:
        from stoker.doctor.report import forecast as report

        report.show(forecast)
    return 0


def _memory(args: argparse.Namespace) -> int | None:
    """Return the bytes of the memory in question; None if no device is named."""
    if args.device_memory is not None:
        return parse_memory(args.device_memory)
    if args.device_profile is None:
        return None
    profile = profiles.resolve(args.device_profile, config.load(Path()).device_profiles)
    usable = profiles.usable_memory(profile)
    if not usable:
        raise UsageError(f"device profile {profile.name!r} gives no memory size: use --device-memory")
    return usable


def _rows(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a batch size: use a whole number such as 256")
    return int(text)


def _seconds(text: str) -> float:
    seconds = seconds_of(text)
    if not seconds:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time: use 60s or 10m")
    return seconds
