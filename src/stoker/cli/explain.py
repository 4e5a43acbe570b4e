"""Print the page of a rule: what it finds, why it costs, what to do instead.

stoker explain STK101
stoker explain missing-prefetch
stoker explain --list
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stoker.cli._options import local_path
from stoker.doctor.check.registry import all_rules
from stoker.doctor.check.rule import Rule
from stoker.doctor.report import rule_page
from stoker.doctor.stall import stalls
from stoker.errors import UsageError
from stoker.printing import print_answer


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker explain`."""
    parser.add_argument("kind", nargs="?", help="a kind's name or code")
    parser.add_argument("--list", action="store_true", help="list all kinds")
    parser.add_argument(
        "--write", type=local_path, metavar="DIRECTORY", help="write all pages there, as Markdown"
    )


def run(args: argparse.Namespace) -> int:
    """Print one page, or list all."""
    if args.write:
        _write(Path(args.write))
        return 0
    if args.list:
        for stall in stalls().values():
            print_answer(f"{stall.code}  {stall.slug:<28} {stall.title}")
        return 0
    if not args.kind:
        raise UsageError("which kind? `stoker explain STK101`, or `stoker explain --list`")
    print_answer(_page(args.kind), end="")
    return 0


def _page(name: str) -> str:
    stall = next((s for s in stalls().values() if name == s.slug or name.upper() == s.code), None)
    if stall is None:
        raise UsageError(f"no kind or code {name!r}; `stoker explain --list` lists all")
    if isinstance(stall, Rule):
        return rule_page.page(stall)
    # Only a run can find it: there is no rule, but there is a remedy.
    found = "Found by `stoker run`, not by reading."
    return f"# {stall.slug} ({stall.code})\n\n{stall.title}. {found}\n\n{stall.remedy}\n"


def _write(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for rule in all_rules():
        (directory / f"{rule.slug}.md").write_text(rule_page.page(rule), encoding="utf-8")
    (directory / "README.md").write_text(rule_page.index(all_rules()), encoding="utf-8")
