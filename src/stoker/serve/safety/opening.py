"""`open_bundle`: the only way to open a bundle for loading. No part of it is loaded or run before it is checked.

It checks, in order, the description and the seal over it, the signature if one is demanded, the hash of every file, and
what the graphs in those files would do.
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

# Signed together with the hash, so that a signature of anything else never fits a bundle.
_PURPOSE = b"stoker bundle 1\n"


@dataclass(frozen=True)
class Trust:
    """The operations and the key that a bundle's user trusts.

    Attributes:
        allow_ops: operations that the bundle may contain although they reach outside the model.
        public_key: the key, as text or as a file, that must have signed the bundle; "" for none.
    """

    allow_ops: tuple[str, ...] = ()
    public_key: str = ""

    @staticmethod
    def of(allow_ops: Iterable[str] = (), require_signature: str | os.PathLike[str] | None = None) -> Trust:
        """Return the trust that the arguments express."""
        names = [allow_ops] if isinstance(allow_ops, str) else allow_ops
        return Trust(tuple(names), os.fspath(require_signature) if require_signature else "")


def open_bundle(
    path: str | os.PathLike[str], trust: Trust | None = None, *, unread: Collection[str] = ()
) -> Bundle:
    """Read a bundle and check everything in it.

    Args:
        path: the bundle's directory.
        trust: what the bundle may contain, and who must have signed it.
        unread: files that the caller will not load: their content need not be read.

    Raises:
        BundleError: the path is not a bundle, or the bundle is not what was exported, lacks the demanded signature, or
            would reach outside the model.
        SigningError: the public key cannot be read.
    """
    known = read_checked(path, trust, unread=unread)
    check_operations(known, trust)
    return known


def read_checked(
    path: str | os.PathLike[str], trust: Trust | None = None, *, unread: Collection[str] = ()
) -> Bundle:
    """Read a bundle and check its description, its signature and its files. This needs no TensorFlow.

    Raises:
        BundleError, SigningError: as in `open_bundle`.
    """
    known = bundle.read(path)
    if trust is not None and trust.public_key:
        _demand_signature(known, trust.public_key)
    bundle.check_files(known, unread)
    return known


def check_operations(known: Bundle, trust: Trust | None) -> None:
    """Check what the bundle's graphs would do, without loading any.

    Raises:
        BundleError: a graph would reach outside the model.
    """
    allowed = () if trust is None else trust.allow_ops
    check_saved_model(known.path / bundle.SAVED_MODEL, allowed)
    for engine, name in bundle.CONVERTED.items():
        if (known.path / name).exists():
            converted_files.CHECKS[engine](known.path / name, allowed)


def seal(description: Description, key: str | os.PathLike[str] | None = None) -> Description:
    """Add the hash to a description, and sign it if there is a key.

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
    """Write `bundle.json` completely or not at all."""
    text = json.dumps(description, indent=1, ensure_ascii=False) + "\n"
    files.write_atomically(directory / bundle.DESCRIPTION, text)


def sign_bundle(path: str | os.PathLike[str], key: str | os.PathLike[str]) -> Bundle:
    """Sign a bundle, which must be what was exported. A bundle without a seal gets one.

    Raises:
        BundleError: the path is not a bundle, or the bundle was changed.
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
