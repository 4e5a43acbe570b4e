"""Heads of the audit: the number and hash of its last row, kept where whoever can write the store cannot.

A chain that contains a head is, up to that row, the one it was then. A head is a JSON object; it may be signed with an
Ed25519 key (`stoker.signing`), so that it can lie anywhere.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker import signing
from stoker.errors import UsageError
from stoker.tracking.store.entries import compact

_MOST_BYTES = 65_536
_TIMEOUT_S = 30
# Signed with the rest, so that a signature of something else is none of a head.
_PURPOSE = "stoker audit head"


@dataclass(frozen=True)
class Head:
    """The end of the audit's chain, at some time."""

    seq: int
    hash: str
    store: str = ""
    time: float = 0.0
    signature: str = ""

    def sign(self, key: str) -> Head:
        """The same, signed with the private key in a file.

        Raises:
            SigningError: there is no such key.
        """
        return Head(self.seq, self.hash, self.store, self.time, signing.sign(self._signed(), key))

    def is_signed_by(self, public: str) -> bool:
        """Whether the owner of a public key, given as text or as a file, has signed it.

        Raises:
            SigningError: there is no such key.
        """
        return signing.verify(self._signed(), self.signature, public)

    def to_json(self) -> str:
        """As it is kept."""
        known = {"store": self.store, "seq": self.seq, "hash": self.hash, "time": self.time}
        return json.dumps(known | ({"signature": self.signature} if self.signature else {}))

    def _signed(self) -> bytes:
        return compact([_PURPOSE, self.store, self.seq, self.hash, self.time]).encode()


def now(seq: int, digest: str, store: str) -> Head:
    """The head of a store at this moment."""
    return Head(seq, digest, store, time.time())


def parse(text: str | bytes) -> Head:
    """Read a head back; those of earlier versions have neither a time nor a signature.

    Raises:
        ValueError: it is none.
    """
    try:
        data: Any = json.loads(text)
        seq, digest = int(data["seq"]), str(data["hash"])
        more = str(data.get("store", "")), float(data.get("time", 0.0)), str(data.get("signature", ""))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise ValueError("no head of an audit") from None
    return Head(seq, digest, *more)


def read(source: str) -> Head:
    """The head in a file, or at an http:// or https:// address.

    Raises:
        UsageError: there is none.
    """
    try:
        if source.startswith(("http://", "https://")):
            with urllib.request.urlopen(source, timeout=_TIMEOUT_S) as answer:
                text = answer.read(_MOST_BYTES)
        else:
            with Path(source).open("rb") as file:
                text = file.read(_MOST_BYTES)
        return parse(text)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "reason", None) or error
        raise UsageError(
            f"cannot read a head from {source} ({reason}): `stoker runs head` writes one"
        ) from None
