"""The options of commands that load a bundle: what the bundle may contain, and who must have signed it."""

from __future__ import annotations

import argparse

from stoker.serve.safety.opening import Trust


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add `--allow-ops` and `--require-signature`."""
    add_allow_ops(parser)
    parser.add_argument(
        "--require-signature",
        default="",
        metavar="PUBLIC_KEY",
        help="accept a bundle only if this key signed it: ed25519:..., or the file that holds it",
    )


def add_allow_ops(parser: argparse.ArgumentParser) -> None:
    """Add `--allow-ops`."""
    parser.add_argument(
        "--allow-ops",
        default="",
        metavar="NAMES",
        help="allow these operations, which reach outside the model, separated by commas",
    )


def trust_of(args: argparse.Namespace) -> Trust:
    """Return the trust that the options ask for. A public key that cannot be read is refused now."""
    if args.require_signature:
        from stoker import signing

        signing.read_public_key(args.require_signature)
    return Trust(split_names(args.allow_ops), args.require_signature)


def split_names(text: str) -> tuple[str, ...]:
    """Return the names in a comma-separated list."""
    return tuple(word.strip() for word in text.split(",") if word.strip())
