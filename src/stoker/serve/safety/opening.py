"""`open_bundle`: the only way to a bundle that will be loaded. Nothing of it is loaded or run before.

In order: its description and the seal over it, the signature if one is demanded, the hash of every file, then what the
graphs in those files would do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from stoker import files, signing
from stoker.serve import bundle
from stoker.serve.bundle import SEAL, Bundle, BundleError, Description
from stoker.serve.safety import converted_files
from stoker.serve.safety.saved_model import check_saved_model

# Signed together with the hash, so that no signature of anything else fits a bundle.
_PURPOSE = b"stoker bundle 1\n"


@dataclass(frozen=True)
class Trust:
    """What the user of a bundle trusts.

    Attributes:
        allow_ops: operations that may be in it though they reach outside the model.
        public_key: its signature must be of this key; its text or its file. "" demands none.
    """

    allow_ops: tuple[str, ...] = ()
    public_key: str = ""

    @staticmethod
    def of(allow_ops: Iterable[str] = (), require_signature: str | os.PathLike[str] | None = None) -> Trust:
        """What was given as arguments."""
        names = [allow_ops] if isinstance(allow_ops, str) else allow_ops
        return Trust(tuple(names), os.fspath(require_signature) if require_signature else "")


def open_bundle(
    path: str | os.PathLike[str], trust: Trust | None = None, *, unread: Collection[str] = ()
) -> Bundle:
    """Read a bundle and check everything in it.

    Args:
        path: its directory.
        trust: what may be in it, and who must have signed it.
        unread: files that the caller will not load: their content need not be read.

    Raises:
        BundleError: it is none, is not what was exported, is not signed by whom it should be, or would reach outside
            the model.
        SigningError: the public key cannot be read.
    """
    known = read_checked(path, trust, unread=unread)
    check_operations(known, trust)
    return known


def read_checked(
    path: str | os.PathLike[str], trust: Trust | None = None, *, unread: Collection[str] = ()
) -> Bundle:
    """Read a bundle, checking its description, its signature and its files. Needs no TensorFlow.

    Raises:
        BundleError, SigningError: as `open_bundle`.
    """
    known = bundle.read(path)
    if trust is not None and trust.public_key:
        _demand_signature(known, trust.public_key)
    bundle.check_files(known, unread)
    return known


def check_operations(known: Bundle, trust: Trust | None = None) -> None:
    """Check what the bundle's graphs would do, without loading any.

    Raises:
        BundleError: one would reach outside the model.
    """
    allowed = () if trust is None else trust.allow_ops
    check_saved_model(known.path / bundle.SAVED_MODEL, allowed)
    for engine, name in bundle.CONVERTED.items():
        if (known.path / name).exists():
            converted_files.CHECKS[engine](known.path / name, allowed)


def seal(description: Description, key: str | os.PathLike[str] | None = None) -> Description:
    """Add the hash to a description, signed if there is a key.

    Raises:
        SigningError: the key cannot be read.
    """
    found = bundle.digest(description)
    seal = {"sha256": found}
    if key is not None:
        seal["signature"] = signing.sign(_PURPOSE + found.encode(), key)
        seal["public_key"] = signing.public_key(key)
    return {**description, SEAL: seal}


def write_description(directory: Path, description: Description) -> None:
    """Write `bundle.json`, all or nothing."""
    text = json.dumps(description, indent=1, ensure_ascii=False) + "\n"
    files.write_atomically(directory / bundle.DESCRIPTION, text)


def sign_bundle(path: str | os.PathLike[str], key: str | os.PathLike[str]) -> Bundle:
    """Sign a bundle, which must be what was exported; one without a seal gets it.

    Raises:
        BundleError: it is none, or was changed.
        SigningError: the key cannot be read.
    """
    known = read_checked(path)
    description = seal(known.description, key)
    try:
        write_description(known.path, description)
    except OSError as error:
        raise BundleError(f"{known.path} cannot be signed: {error.strerror}") from None
    return replace(known, description=description)


def _demand_signature(known: Bundle, public_key: str) -> None:
    public = signing.read_public_key(public_key)
    seal = known.description.get(SEAL, {})
    signature = seal.get("signature")
    if not isinstance(signature, str):
        raise BundleError(f"{known.path} is not signed: sign it with stoker bundle {known.path} --sign KEY")
    if not signing.verify(_PURPOSE + bundle.digest(known.description).encode(), signature, public):
        raise BundleError(f"{known.path} is not signed with the key {public}")
