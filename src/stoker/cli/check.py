"""Read TensorFlow programs and report what will stall them, without running them.

    stoker check src/ train.ipynb
    cat train.py | stoker check -
    stoker check --format json --select STK1 .

Exit code: 0 clean, 1 findings (of severity error, unless --fail-on says otherwise), 2 usage or unreadable input.
"""

from __future__ import annotations

import argparse
import dataclasses
import os

from stoker.cli._options import local_path
from stoker.config import SEVERITIES, Config, load, names
from stoker.doctor.check.cache import Cache
from stoker.doctor.check.checker import Checked, check_paths
from stoker.doctor.check.rule import Problem
from stoker.doctor.check.source.files import STDIN, discover, project_root, shorten_path
from stoker.doctor.report import problems as report
from stoker.doctor.report.line_prices import read_prices
from stoker.doctor.stall import is_known
from stoker.files import CACHE, RUNS
from stoker.printing import print_answer, print_note


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker check`."""
    parser.add_argument(
        "paths", type=local_path, nargs="*", default=["."], help="files, notebooks, directories; - is stdin"
    )
    parser.add_argument("--format", choices=tuple(report.FORMATS), default="text", help="how to report")
    add_selection(parser)
    parser.add_argument(
        "--statistics", action="store_true", help="count findings by kind instead of listing them"
    )
    parser.add_argument(
        "--fail-on", choices=SEVERITIES, help="the lowest severity that fails the check (error)"
    )
    parser.add_argument("--no-cache", action="store_true", help="ignore the cache and check every file again")
    parser.add_argument("-j", "--jobs", type=int, metavar="N", help="processes (default: one per core)")


def add_selection(parser: argparse.ArgumentParser) -> None:
    """Add `--select` and `--ignore`, which `stoker fix` has as well."""
    parser.add_argument(
        "--select", metavar="KINDS", help="report only these kinds, codes or families, comma-separated"
    )
    parser.add_argument("--ignore", metavar="KINDS", help="leave out these kinds, codes or families")


def run(args: argparse.Namespace) -> int:
    """Check the files and report; the exit code says whether there is anything to repair."""
    config = configuration(args)
    if args.fail_on:
        config = dataclasses.replace(config, fail_on=args.fail_on)
    checked = check_configured_paths(args.paths, config, use_cache=not args.no_cache, jobs=args.jobs)
    found = _add_prices(checked.problems)
    shown = [dataclasses.replace(problem, file=shorten_path(problem.file)) for problem in found]
    if args.statistics:
        print_answer(report.statistics(shown), end="")
    else:
        print_answer(report.FORMATS[args.format](shown), end="")
    for error in checked.errors:
        print_note(str(error))
    if args.format in ("text", "concise"):
        print_note(_summary(shown, checked), prefix="")
    if checked.errors:
        return 2
    return 1 if any(config.fails(problem.severity) for problem in found) else 0


def configuration(args: argparse.Namespace) -> Config:
    """Return the project's configuration, overridden by the flags."""
    first = next((path for path in args.paths if path != STDIN), ".")
    start = first if os.path.isdir(first) else os.path.dirname(first) or "."
    config = load(project_root(start), is_known)
    if args.select:
        config = dataclasses.replace(config, select=names(args.select.split(","), "--select", is_known))
    if args.ignore:
        config = dataclasses.replace(
            config, ignore=config.ignore + names(args.ignore.split(","), "--ignore", is_known)
        )
    return config


def check_configured_paths(
    paths: list[str], config: Config, *, use_cache: bool, jobs: int | None = None
) -> Checked:
    """Check the files at these paths, except those that the configuration excludes."""
    files = [path for path in discover(paths) if not config.excludes(path)]
    cache = Cache(config.root / CACHE) if use_cache else None
    checked = check_paths(files, jobs=jobs, cache=cache)
    kept = [p for p in checked.problems if config.reports(p.kind, p.code, p.file)]
    return dataclasses.replace(checked, problems=kept)


def _add_prices(problems: list[Problem]) -> list[Problem]:
    """Add to each problem what its line cost in saved runs."""
    if not problems:
        return []
    prices = read_prices([RUNS.absolute()])
    found = ((problem, prices.find(problem)) for problem in problems)
    return [problem if price is None else price.attach_to(problem) for problem, price in found]


def _summary(problems: list[Problem], checked: Checked) -> str:
    files = f"{checked.files} file{'' if checked.files == 1 else 's'}"
    if not problems:
        return f"No findings in {files}."
    counts = [f"{sum(p.severity == s for p in problems)} {s}" for s in reversed(SEVERITIES)]
    fixable = sum(p.fix is not None and p.fix.safety == "safe" for p in problems)
    unsafe = sum(p.fix is not None and p.fix.safety == "unsafe" for p in problems)
    hint = f" {fixable} fixable with `stoker fix`, {unsafe} more with `--unsafe`." if fixable + unsafe else ""
    return f"Found {len(problems)} in {files}: {', '.join(counts)}.{hint}"
