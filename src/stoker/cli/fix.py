"""Repair what `stoker check` finds, where a repair is known.

    stoker fix src/                  # safe repairs: the results stay the same
    stoker fix --unsafe --diff .     # show all repairs, change nothing
    stoker fix --unsafe --verify train.py --epochs 1    # run before and after, keep only what holds

Without a path, all programs and notebooks in this directory and those below it are repaired; with `--verify`, only the
program that it names.

Exit code: 0 done, 1 a repair was undone because it did not hold, 2 usage or unreadable input. Ctrl-C and SIGTERM
end `--verify` with 130 and 143, and the files are put back.
"""

from __future__ import annotations

import argparse
import signal
from collections.abc import Sequence
from typing import Any

from stoker.cli._options import local_path
from stoker.cli.check import add_selection, configuration
from stoker.doctor.check.rule import Problem
from stoker.doctor.check.source.files import STDIN, discover, shorten_path
from stoker.doctor.fix import verified, verify
from stoker.doctor.fix.plan import FileChange, plan
from stoker.doctor.fix.verify import Verdict
from stoker.errors import RecordError, UsageError
from stoker.printing import print_answer, print_note
from stoker.units import quantity

# The codes with which a shell reports what these signals have ended.
_INTERRUPTED, _TERMINATED = 130, 143


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker fix`."""
    parser.add_argument(
        "paths", type=local_path, nargs="*", help="files, notebooks, directories (this directory)"
    )
    add_selection(parser)
    parser.add_argument("--unsafe", action="store_true", help="also apply fixes that may change results")
    parser.add_argument("--diff", action="store_true", help="show the changes, write nothing")
    parser.add_argument(
        "--tolerance", type=float, default=1e-3, help="how far numbers may move with --verify (1e-3)"
    )
    parser.add_argument(
        "--verify",
        nargs=argparse.REMAINDER,
        metavar="PROGRAM",
        help="run this program before and after; put the files back unless it gives the same results no slower",
    )
    _allow_separator(parser)


def _allow_separator(parser: argparse.ArgumentParser) -> None:
    """Let `--verify -- python train.py` mean `--verify python train.py`.

    argparse ends an option's remainder at `--`, whatever follows, so the separator is removed before it parses.
    """
    parse = parser.parse_known_args

    def parse_without(args: Sequence[str] | None = None, namespace: Any = None) -> Any:
        words = list(args or ())
        if "--verify" in words:
            after = words.index("--verify") + 1
            if words[after : after + 1] == ["--"]:
                del words[after]
        return parse(words, namespace)

    parser.parse_known_args = parse_without  # type: ignore[method-assign, assignment]


def run(args: argparse.Namespace) -> int:
    """Plan the repairs, then show, write or verify them."""
    words = None if args.verify is None else verify.program_words(args.verify)
    everywhere = not args.paths and not words
    args.paths = args.paths or ([words[0]] if words else ["."])
    if STDIN in args.paths:
        raise UsageError("standard input cannot be fixed in place: give a file")
    config = configuration(args)
    files = [path for path in discover(args.paths) if not config.excludes(path)]
    wanted = {"safe", "unsafe"} if args.unsafe else {"safe"}
    repairs = plan(files, wanted, config.reports)
    changes, left = repairs.changes, _describe_left(repairs.left, args.unsafe)
    # Who named no path may not know how many files that means.
    total = quantity(len(files), "file") if everywhere else ""
    for error in repairs.errors:
        print_note(str(error))
    code = 0
    if args.diff:
        print_answer("".join(change.diff() for change in changes), end="")
        if left:
            print_note(left, prefix="")
    elif not changes:
        where = f" in {total}" if total else ""
        print_answer(f"Nothing fixed{where}. {left}" if left else f"Nothing to fix{where}.")
    else:
        code = _write(changes, total) if words is None else _apply_verified(changes, words, args.tolerance)
        if left and not code:
            print_answer(left)
    return 2 if repairs.errors else code


def _describe_left(left: list[Problem], unsafe_applied: bool) -> str:
    """Say how many findings are left, and how many of them `--unsafe` would fix."""
    total = len(left)
    if not total:
        return ""
    unsafe = 0 if unsafe_applied else sum(p.fix is not None and p.fix.safety == "unsafe" for p in left)
    what = "1 finding has no" if total == 1 else f"{total} findings have no"
    if not unsafe:
        return f"{what} fix; `stoker check` lists {'it' if total == 1 else 'them'}."
    offered = "it has one" if unsafe == total == 1 else f"{unsafe} {'has one' if unsafe == 1 else 'have one'}"
    return f"{what} safe fix; {offered} that may change results (--unsafe; with --diff it only shows the changes)."


def _write(changes: list[FileChange], looked_at: str) -> int:
    for change in changes:
        change.write()
        _say(change)
    total = sum(len(change.fixed) for change in changes)
    where = f"{len(changes):,} of {looked_at}" if looked_at else quantity(len(changes), "file")
    print_answer(f"Fixed {total} in {where}.")
    return 0


def _say(change: FileChange) -> None:
    for problem in change.fixed:
        message = problem.fix.message if problem.fix is not None else ""
        print_answer(f"{shorten_path(change.path)}:{problem.line}: {problem.code} {problem.kind}: {message}")


def _apply_verified(changes: list[FileChange], words: list[str], tolerance: float) -> int:
    try:
        with verify.raise_when_terminated():
            run_id, verdict = _compare_runs(changes, words, tolerance)
    except KeyboardInterrupt:
        print_note("\nstoker: interrupted; the files are as they were", prefix="")
        return _INTERRUPTED
    except verify.Terminated:
        print_note("terminated; the files are as they were")
        return _TERMINATED
    kept = verdict.keep
    if verdict.same and verdict.of_steps:
        _keep_gain(run_id, changes, verdict.speedup)
    for change in changes:
        _say(change)
    print_answer(f"{verdict}{'' if kept else ': the files were put back'}")
    hints = () if verdict.same else (verify.describe_missing_seed(words), verdict.hint)
    for hint in filter(None, hints):
        print_answer(hint)
    return 0 if kept else 1


def _compare_runs(changes: list[FileChange], words: list[str], tolerance: float) -> tuple[str, Verdict]:
    """Run the program before and after the changes, and undo them if they do not hold."""
    before = verify.run(words)
    kept = False
    try:
        for change in changes:
            change.write()
        verdict = verify.compare(before, verify.run(words), tolerance)
        kept = verdict.keep
    finally:
        # This also undoes the changes if the second run could not be made at all, or was interrupted.
        if not kept:
            _undo(changes)
    return before.run_id, verdict


def _undo(changes: list[FileChange]) -> None:
    """Put the files back; a signal waits until all are."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        for change in changes:
            change.undo()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _keep_gain(run_id: str, changes: list[FileChange], speedup: float) -> None:
    """Record the measured speed-up as the price of the repair: the report and `stoker check` show the same number."""
    try:
        verified.keep_gain(run_id, changes, speedup)
    except (RecordError, OSError) as error:
        print_note(f"the record of the first run has no new price: {error}")
