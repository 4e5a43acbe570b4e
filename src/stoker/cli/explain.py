"""Print the page of a rule: what it finds, why it costs, what to do instead.

stoker explain STK101
stoker explain missing-prefetch
stoker explain --list
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stoker.cli._paths import local_path
from stoker.doctor.check.registry import all_rules
from stoker.doctor.report import rule_page
from stoker.errors import UsageError
from stoker.kinds import BY_CODE, KINDS


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker explain`."""
    parser.add_argument("kind", nargs="?", help="a kind's name or code")
    parser.add_argument("--list", action="store_true", help="list all kinds")
    parser.add_argument(
        "--write", type=local_path, metavar="DIRECTORY", help="write all pages there, as Markdown"
    )


def run(args: argparse.Namespace) -> int:
    """Print one page, or all."""
    if args.write:
        _write(Path(args.write))
        return 0
    if args.list:
        for kind in KINDS.values():
            print(f"{kind.code}  {kind.slug:<28} {kind.title}")
        return 0
    if not args.kind:
        raise UsageError("which kind? `stoker explain STK101`, or `stoker explain --list`")
    sys.stdout.write(_page(args.kind))
    return 0


def _page(name: str) -> str:
    kind = KINDS.get(name) or BY_CODE.get(name.upper())
    if kind is None:
        raise UsageError(f"no kind or code {name!r}; `stoker explain --list` names them all")
    for rule in all_rules():
        if rule.kind == kind.slug:
            return rule_page.page(rule)
    # Found by running only: there is no rule, but there is a remedy.
    return f"# {kind.slug} ({kind.code})\n\n{kind.title}. Found by `stoker run`, not by reading.\n\n{kind.remedy}\n"


def _write(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for rule in all_rules():
        (directory / f"{rule.kind}.md").write_text(rule_page.page(rule), encoding="utf-8")
    (directory / "README.md").write_text(rule_page.index(all_rules()), encoding="utf-8")
