"""Print the head of the audit. Keep it where people with write access to the store cannot change it.

    stoker runs head --sign auditor.pem > head.json
    stoker runs verify --head head.json --key auditor.pem.pub

With --sign, the head is signed with an Ed25519 private key in PEM format (`pip install 'stoker[sign]'`).
"""

from __future__ import annotations

import argparse

from stoker.cli._options import read_store
from stoker.errors import UsageError
from stoker.printing import print_answer
from stoker.tracking.store import heads
from stoker.tracking.store.queries import open_reader


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the option that says which key signs the head."""
    parser.add_argument("--sign", metavar="KEY", help="sign it with the private key in this file")


def run(args: argparse.Namespace) -> int:
    """Print the head."""
    store = read_store(args)
    with open_reader(store) as reader:
        found = reader.audit_head()
    if found is None:
        raise UsageError(f"the audit of {store} is empty: it has no head yet")
    head = heads.Head.make_now(*found, str(store))
    print_answer((head.sign(args.sign) if args.sign else head).to_json())
    return 0
