"""The options of `stoker launch`, and the request that they make. Schedulers add options of their own."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

from stoker import deprecation, units
from stoker.cli._launch import metrics
from stoker.cli._options import add_price, add_program, local_path, read_program
from stoker.doctor.measure.launch import Target
from stoker.errors import UsageError
from stoker.launch.hosts import parse_size
from stoker.launch.limits import LaunchLimits
from stoker.launch.place import JOB
from stoker.launch.request import JobRequest
from stoker.launch.schedulers import SCHEDULERS, Scheduler
from stoker.printing import print_note

ENGINE_REMOVED_IN = "0.4"

# The simplest scheduler comes first.
_NAMES = list(reversed(SCHEDULERS))
_SUBMITTED = " or ".join(kind.name for kind in SCHEDULERS.values() if kind.takes_submissions)


class _SchedulerFlag(argparse.Action):
    """`--scheduler`; its old name `--engine` still works, and warns."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        # Manifests use --engine for images whose Stoker may be older, and nobody reads a hint there.
        if option_string == "--engine" and not {JOB, "TF_CONFIG"} & os.environ.keys():
            print_note(deprecation.describe("--engine", "--scheduler", ENGINE_REMOVED_IN))
        setattr(namespace, self.dest, values)


def configure(parser: argparse.ArgumentParser) -> None:
    """Options come before the program; everything after it belongs to the program."""
    parser.add_argument(
        "-n", dest="size", metavar="N", help="the number of workers: 4, or 2:8 for 2 to 8 (default: 1)"
    )
    parser.add_argument(
        "--scheduler",
        "--engine",
        action=_SchedulerFlag,
        choices=_NAMES,
        default="local",
        help="what provides the machines (default: local, or ssh with --hosts or --discover)",
    )
    for name in _NAMES:
        SCHEDULERS[name].add_options(parser)
    parser.add_argument(
        "--python", metavar="PATH", help="Python on the other machines (default: the same path as here)"
    )
    parser.add_argument(
        "--write",
        type=local_path,
        metavar="PATH",
        help=f"{_SUBMITTED}: write what would be submitted; - is stdout",
    )
    parser.add_argument(
        "--name", metavar="NAME", default="", help=f"{_SUBMITTED}: the job's name (default: the program's)"
    )
    _add_limits(parser)
    parser.add_argument(
        "--ledger",
        action="store_true",
        help="run each worker under stoker run, and show the ledger and the goodput of the job",
    )
    parser.add_argument(
        "--standby",
        action="store_true",
        help="keep a process for each worker that has imported TensorFlow and takes its place after a fault",
    )
    parser.add_argument(
        "--metrics",
        type=local_path,
        metavar="FILE.prom",
        help="write the goodput of the job for Prometheus' node_exporter, every 15 s and at its end",
    )
    add_price(parser, "with --ledger or --metrics: what one worker costs, such as 3.20/h")
    parser.add_argument("--quiet", action="store_true", help="write output to the log files only")
    add_program(parser)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    default = LaunchLimits()
    parser.add_argument(
        "--max-restarts",
        metavar="N",
        default=str(default.max_restarts),
        help=f"how many times to restart after faults (default: {default.max_restarts})",
    )
    for option, seconds, what in (
        ("--heartbeat", default.heartbeat_s, "the time without a heartbeat after which a worker is lost"),
        (
            "--start-deadline",
            default.start_s,
            "the time for workers to start, and for all to join once one has joined",
        ),
        ("--grace", default.grace_s, "the time workers have to save when they are asked to stop"),
    ):
        text = f"{seconds:g}s"
        parser.add_argument(option, metavar="TIME", default=text, help=f"{what} (default: {text})")


def read_request(args: argparse.Namespace) -> JobRequest:
    """Read what is to run.

    Raises:
        UsageError: an option makes no sense, or the program cannot be run.
    """
    metrics.check_file(args.metrics)
    if args.price and not args.ledger and not args.metrics:
        raise UsageError(
            "--price goes with --ledger or --metrics; afterwards, use stoker runs show JOB --price 3.20/h"
        )
    if args.standby and args.ledger:
        raise UsageError("--standby does not go with --ledger: use stoker runs show JOB for the goodput")
    # Parsed before the program: after `-nn 2`, that would be 2.
    size = parse_size(args.size) if args.size else None
    target, limits = _read_target(args), _read_limits(args)
    return JobRequest(target, limits, size, args.name, args.ledger, args.standby)


def make_scheduler(args: argparse.Namespace, variables: Mapping[str, str]) -> Scheduler:
    """Make the scheduler that the options ask for.

    Raises:
        UsageError: the scheduler's options make no sense, or it has no submission to `--write`.
    """
    scheduler = SCHEDULERS[args.scheduler].from_options(args, variables)
    if args.write and not scheduler.takes_submissions:
        raise UsageError(f"--write does not work with {scheduler.name}: use --scheduler {_SUBMITTED}")
    return scheduler


def _read_target(args: argparse.Namespace) -> Target:
    target = Target(*read_program(args, "stoker launch -n 4 train.py"))
    if not (args.write and SCHEDULERS[args.scheduler].uses_image):
        target.check()
        # Another Python may know other syntax.
        if not args.python:
            target.check_syntax()
    return target


def _read_limits(args: argparse.Namespace) -> LaunchLimits:
    if not args.max_restarts.isdigit():
        raise UsageError(f"--max-restarts {args.max_restarts!r}: give a whole number such as 3")
    return LaunchLimits(
        heartbeat_s=_read_seconds("--heartbeat", args.heartbeat),
        start_s=_read_seconds("--start-deadline", args.start_deadline),
        grace_s=_read_seconds("--grace", args.grace),
        max_restarts=int(args.max_restarts),
    )


def _read_seconds(option: str, text: str) -> float:
    seconds = units.seconds_of(text)
    if not seconds:
        raise UsageError(f"{option} {text!r}: give a time such as 30s or 5m")
    return seconds
