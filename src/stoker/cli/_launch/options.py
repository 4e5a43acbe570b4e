"""The options of `stoker launch`, and the values they stand for."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from stoker import units
from stoker.cli._paths import local_path
from stoker.doctor.measure.launch import Target
from stoker.errors import UsageError
from stoker.launch.limits import Limits

ENGINES = ("local", "slurm", "kubernetes", "ray", "tf-config")


def configure(parser: argparse.ArgumentParser) -> None:
    """Options come before the program; everything after it is the program's."""
    parser.add_argument("-n", dest="size", metavar="N", help="workers: 4, or 2:8 for 2 to 8 (default: 1)")
    parser.add_argument("--hosts", metavar="A,B", help="machines to reach by ssh: a,b or a:4,b:4")
    parser.add_argument(
        "--discover", metavar="COMMAND", help="a command that prints the machines there are now"
    )
    parser.add_argument("--ssh", metavar="COMMAND", default="ssh", help="ssh and its options")
    parser.add_argument(
        "--python", metavar="PATH", help="Python on the other machines; the same path by default"
    )
    parser.add_argument("--engine", choices=ENGINES, default="local", help="who provides the machines")
    parser.add_argument(
        "--write",
        type=local_path,
        metavar="PATH",
        help="write what would be submitted (slurm, kubernetes); - is stdout",
    )
    parser.add_argument(
        "--sbatch", metavar="OPTION", action="append", default=[], help="an option for sbatch; repeatable"
    )
    parser.add_argument("--image", metavar="IMAGE", help="kubernetes: the container's image")
    parser.add_argument(
        "--pod", metavar="JSON", help="kubernetes: more fields of the pod's spec, or a file with them"
    )
    parser.add_argument(
        "--kind", choices=("jobset", "tfjob"), default="jobset", help="kubernetes: what to write"
    )
    parser.add_argument(
        "--name", metavar="NAME", default="", help="the job's name there; the program's by default"
    )
    _add_limits(parser)
    parser.add_argument(
        "--ledger", action="store_true", help="run each worker under stoker run, and show the job's ledger"
    )
    parser.add_argument("--quiet", action="store_true", help="output goes to the log files alone")
    parser.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    parser.add_argument("program", nargs=argparse.REMAINDER, metavar="program args...")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    usual = Limits()
    parser.add_argument(
        "--max-restarts",
        metavar="N",
        default=str(usual.max_restarts),
        help=f"after faults (default: {usual.max_restarts})",
    )
    for option, seconds, what in (
        ("--heartbeat", usual.heartbeat_s, "a worker without a sign of life for so long is lost"),
        (
            "--start-deadline",
            usual.start_s,
            "how long workers may take to start, and to join once one has joined",
        ),
        ("--grace", usual.grace_s, "workers that are told to end have so long to save"),
    ):
        text = f"{seconds:g}s"
        parser.add_argument(option, metavar="TIME", default=text, help=f"{what} (default: {text})")


def target_of(args: argparse.Namespace) -> Target:
    """The program.

    Raises:
        UsageError: there is none, or it cannot be run.
    """
    words = args.program if args.module is None else args.module
    if not words:
        raise UsageError("no program given: stoker launch -n 4 train.py")
    target = Target(words[0], words[1:], is_module=args.module is not None)
    # What is written for Kubernetes runs in an image of its own.
    if args.engine != "kubernetes" or not args.write:
        target.check()
    return target


def limits_of(args: argparse.Namespace) -> Limits:
    """The limits.

    Raises:
        UsageError: one of them is no time, or no number.
    """
    if not args.max_restarts.isdigit():
        raise UsageError(f"--max-restarts {args.max_restarts!r}: give a whole number such as 3")
    return Limits(
        heartbeat_s=_seconds("--heartbeat", args.heartbeat),
        start_s=_seconds("--start-deadline", args.start_deadline),
        grace_s=_seconds("--grace", args.grace),
        max_restarts=int(args.max_restarts),
    )


def _seconds(option: str, text: str) -> float:
    seconds = units.seconds_of(text)
    if not seconds:
        raise UsageError(f"{option} {text!r}: give a time such as 30s or 5m")
    return seconds


def pod_of(text: str | None) -> dict[str, Any]:
    """The fields in `--pod`, as JSON or in a file of it.

    Raises:
        UsageError: it is no JSON, or no map.
    """
    if text is None:
        return {}
    try:
        said = text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8")
        fields = json.loads(said)
    except OSError as error:
        raise UsageError(f"--pod {text!r} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"--pod is not valid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise UsageError('--pod: give a map of fields, such as {"nodeSelector": {...}}')
    return fields
