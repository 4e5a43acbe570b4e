"""Describe a bundle: its inputs and outputs, versions and weights. --verify runs its recorded examples again.

    stoker bundle bundle/
    stoker bundle bundle/ --verify
    stoker bundle --new-key release.key
    stoker bundle bundle/ --sign release.key
    stoker bundle bundle/ --verify --require-signature release.key.pub

Nothing of a bundle is loaded before its hashes, its signature (if asked for) and its operations are checked. Exit code:
0; 2 if it is not a bundle, is damaged, lacks the signature, reaches outside the model, or no longer gives the answers
it was exported with.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from stoker import signing, units
from stoker.chatter import quiet_tensorflow
from stoker.cli._options import add_json, local_path
from stoker.cli._trust import add_trust, trust_of
from stoker.errors import UsageError
from stoker.printing import print_answer
from stoker.serve import bundle
from stoker.serve.safety.opening import read_checked, sign_bundle


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `stoker bundle`."""
    parser.add_argument(
        "path", type=local_path, nargs="?", metavar="PATH", help="the bundle's directory, or a run's"
    )
    parser.add_argument(
        "--verify", action="store_true", help="check the hashes and run the recorded examples"
    )
    add_json(parser, "print its description as JSON")
    parser.add_argument("--sign", type=local_path, metavar="KEY", help="sign it with this private key")
    parser.add_argument(
        "--new-key",
        type=local_path,
        metavar="FILE",
        help="create a signing key; FILE.pub is its public key",
    )
    add_trust(parser)


def run(args: argparse.Namespace) -> int:
    """Read and print the bundle, and sign or prove it if asked to."""
    if args.new_key:
        public = signing.generate_key(args.new_key)
        print_answer(
            f"{args.new_key}: keep it secret; its public key is {public} (also in {args.new_key}.pub)"
        )
    if args.path is None:
        if args.new_key:
            return 0
        raise UsageError("stoker bundle needs the PATH of a bundle")
    trust = trust_of(args)
    path = bundle.enter_run(Path(args.path))
    found = sign_bundle(path, args.sign) if args.sign else bundle.read(path)
    if trust.public_key:
        found = read_checked(path, trust)
    if args.json:
        print_answer(json.dumps(found.description))
    else:
        _show(found, bool(trust.public_key))
    if args.verify:
        from stoker.serve.proof import prove

        with quiet_tensorflow():
            proof = prove(path, lenient=True, trust=trust)
        if not args.json:
            examples = units.quantity(proof["rows"], "example")
            print_answer(
                f"verified: the files are as exported, and the answers to {examples} are those recorded"
            )
            if proof["keras"]:
                print_answer(f"{bundle.KERAS} is not loaded: {proof['keras']}")
    return 0


def _show(found: bundle.Bundle, demanded: bool) -> None:
    said = found.description
    weights = said.get("weights", {}).get("count")
    print_answer(
        f"{found.path}: {said.get('model', 'a model')}, version {found.version}, "
        f"exported {said.get('created', 'at an unknown time')}"
    )
    print_answer(
        f"{units.size(found.bytes)}, {weights} weights ({units.size(found.weight_bytes)}); "
        + ", ".join(f"{name} {version}" for name, version in said.get("versions", {}).items())
    )
    for what, fields in (("takes", found.signature.inputs), ("gives", found.signature.outputs)):
        for number, field in enumerate(fields):
            kind = f"  ({field.kind})" if field.kind else ""
            print_answer(f"{what if number == 0 else '':<6} {field}{kind}")
    if found.labels:
        shown = ", ".join(found.labels[:8]) + (", ..." if len(found.labels) > 8 else "")
        print_answer(f"labels {len(found.labels)}: {shown}")
    worth = {
        name: value for name, value in said.get("evaluation", {}).items() if isinstance(value, float | int)
    }
    if worth:
        print_answer("scores " + ", ".join(f"{name} {value:.4g}" for name, value in worth.items()))
    if said.get("engines"):
        print_answer("engines session, threads, function, " + ", ".join(said["engines"]))
    training = said.get("lineage", {}).get("training")
    if isinstance(training, dict):
        print_answer(f"run    {training.get('run')} ({training.get('name')}), in {training.get('store')}")
    if said.get(bundle.SEAL, {}).get("public_key"):
        checked = "checked" if demanded else "not checked without --require-signature"
        print_answer(f"signed {said[bundle.SEAL]['public_key']} ({checked})")
    if found.note:
        print_answer(f"note   {found.note}")
    fault = said.get("keras", {}).get("fault")
    if fault:
        print_answer(f"{bundle.KERAS} does not load by itself: {fault}")
