"""Verify the store: the chain of its audit, every run that has ended, and the content of every artifact.

    stoker runs verify
    stoker runs verify --head head.json --key auditor.pub

Everything that has changed since it was written is named, one line each. With --head, the chain must contain a head
that `stoker runs head` gave earlier; with --key, this key must have signed that head. Exit code: 0 if nothing has
changed, 1 if something has, 2 for a bad request.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from stoker.cli._options import add_json, read_store
from stoker.errors import UsageError
from stoker.printing import print_answer, print_json, print_note
from stoker.tracking.store import heads
from stoker.tracking.store.verifying import Anchor, verify
from stoker.units import printable, quantity


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what to compare the store with."""
    add_anchor(parser)
    add_json(parser, inherits=True)


def add_anchor(parser: argparse.ArgumentParser) -> None:
    """Add `--head` and `--key`."""
    parser.add_argument("--head", metavar="FILE|URL", help="an earlier head that the audit must contain")
    parser.add_argument("--key", metavar="PUBLIC", help="the public key that signed the head, or its file")


def run(args: argparse.Namespace) -> int:
    """Verify the store, and give the verdict as the exit code."""
    if args.key and not args.head:
        raise UsageError("--key says who signed the head: give --head FILE, too")
    store = read_store(args)
    anchor = Anchor(heads.read(args.head), args.head, args.key or "") if args.head else None
    found = verify(store, anchor)
    if args.json:
        print_json(asdict(found))
        return 1 if found.problems else 0
    for note in found.notes:
        print_note(f"note: {printable(note)}", prefix="")
    if found.problems:
        print_answer("\n".join(map(printable, found.problems)))
        return 1
    print_answer(
        f"the audit is whole: {quantity(found.rows, 'row')}, {quantity(found.sealed, 'sealed run')}, "
        f"{quantity(found.files, 'file')} as written"
    )
    return 0
