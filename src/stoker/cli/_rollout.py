"""The options of `stoker serve` for a new version that runs beside the one that answers."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from dataclasses import dataclass

from stoker.cli._options import parse_named_path, read_percentage
from stoker.errors import UsageError

_MOST_CANARY = 0.5


@dataclass(frozen=True)
class RolloutOptions:
    """The values of the options.

    Attributes:
        shadows: by model, the path of its candidate.
        allowed: the share of rows that a candidate may answer differently.
        canary: the share of requests that a candidate answers.
    """

    shadows: dict[str, str]
    allowed: float
    canary: float


def add_rollout(parser: argparse.ArgumentParser) -> None:
    """Add `--shadow`, `--shadow-allow` and `--canary`."""
    parser.add_argument(
        "--shadow",
        type=parse_named_path,
        action="append",
        default=[],
        metavar="[NAME=]PATH",
        help="also send requests to this new version, and report whether it answers the same",
    )
    parser.add_argument(
        "--shadow-allow",
        default="1%",
        metavar="PERCENT",
        help="the share of rows that the new version may answer differently (1%%)",
    )
    parser.add_argument(
        "--canary",
        default="",
        metavar="PERCENT",
        help="let the --shadow version answer this share of requests, until it proves different (none)",
    )


def read_rollout(
    args: argparse.Namespace, models: Collection[str], parse: Callable[[str, str], tuple[str, str]]
) -> RolloutOptions:
    """Return the values of the options. For `[NAME=]PATH`, `parse` returns the name, or the default one, and the path.

    Raises:
        UsageError: the options do not fit the models or each other.
    """
    usual = next(iter(models)) if len(models) == 1 else ""
    shadows: dict[str, str] = {}
    for word in args.shadow:
        name, path = parse(word, usual)
        if name not in models:
            raise UsageError(f"--shadow {word}: give NAME=PATH, where NAME is one of {', '.join(models)}")
        if name in shadows:
            raise UsageError(f"--shadow {word}: {name} already has a candidate")
        shadows[name] = path
    canary = read_percentage(args.canary, "--canary") if args.canary else 0.0
    if canary and not shadows:
        raise UsageError("--canary needs the new version: name it with --shadow [NAME=]PATH")
    if canary > _MOST_CANARY:
        raise UsageError(
            f"--canary {args.canary}: at most 50%, because the other requests provide the evidence"
        )
    return RolloutOptions(shadows, read_percentage(args.shadow_allow, "--shadow-allow"), canary)
