"""Say what a bundle is: what it takes and gives, its versions, its weights; --verify has it answer its examples again.

    stoker bundle bundle/
    stoker bundle bundle/ --verify

Exit code: 0; 2 if it is no bundle, damaged, or no longer gives the answers it was exported with.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from stoker import units
from stoker.serve import bundle


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of `stoker bundle`."""
    parser.add_argument("path", metavar="PATH", help="the bundle's directory")
    parser.add_argument(
        "--verify", action="store_true", help="check the hashes and run the recorded examples"
    )
    parser.add_argument("--json", action="store_true", help="print its description as JSON")


def run(args: argparse.Namespace) -> int:
    """Read, print, and prove it if asked to."""
    found = bundle.read(args.path)
    if args.json:
        print(json.dumps(found.description))
    else:
        _show(found)
    if args.verify:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        from stoker.serve.proof import prove

        rows = prove(Path(args.path), lenient=True)["rows"]
        if not args.json:
            print(
                f"verified: the files are the ones exported, and {rows} examples give their recorded answers"
            )
    return 0


def _show(found: bundle.Bundle) -> None:
    said = found.description
    weights = said["weights"]
    print(f"{found.path}: {said['model']}, version {found.version}, exported {said['created']}")
    print(
        f"{units.size(found.bytes)}, {weights['count']:,} weights ({units.size(weights['bytes'])}); "
        + ", ".join(f"{name} {version}" for name, version in said["versions"].items())
    )
    for what, fields in (("takes", found.signature.inputs), ("gives", found.signature.outputs)):
        for number, field in enumerate(fields):
            kind = f"  ({field.kind})" if field.kind else ""
            print(f"{what if number == 0 else '':<6} {field}{kind}")
    if found.labels:
        shown = ", ".join(found.labels[:8]) + (", ..." if len(found.labels) > 8 else "")
        print(f"labels {len(found.labels)}: {shown}")
    if said["evaluation"]:
        print("worth  " + ", ".join(f"{name} {value:.4g}" for name, value in said["evaluation"].items()))
    if said.get("engines"):
        print("engines session, threads, function, " + ", ".join(said["engines"]))
    training = said["lineage"].get("training")
    if training:
        print(f"run    {training['run']} ({training['name']}), in {training['store']}")
    if said["keras"]["fault"]:
        print(f"{bundle.KERAS} does not load by itself: {said['keras']['fault']}")
