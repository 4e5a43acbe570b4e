"""Heads of the audit: number and hash of its last row, to be kept out of reach of those who can write to the store.

If a chain contains a head, the chain is unchanged up to that row. A head is a JSON object. Signed with an Ed25519 key
(`stoker.signing`), it can be kept anywhere.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from stoker import signing
from stoker.errors import UsageError
from stoker.tracking.store.plain_values import dump_compact

_MOST_BYTES = 65_536
_TIMEOUT_S = 30
# Signed together with the rest, so that a signature of something else does not pass as that of a head.
_PURPOSE = "stoker audit head"


@dataclass(frozen=True)
class Head:
    """The end of the audit's chain at some time."""

    seq: int
    hash: str
    store: str = ""
    time: float = 0.0
    signature: str = ""

    @classmethod
    def make_now(cls, seq: int, digest: str, store: str) -> Head:
        """Return the head of a store at this moment."""
        return cls(seq, digest, store, time.time())

    def sign(self, key: str) -> Head:
        """Return the same head, signed with the private key in a file.

        Raises:
            SigningError: there is no such key.
        """
        return Head(self.seq, self.hash, self.store, self.time, signing.sign(self._signed_bytes(), key))

    def is_signed_by(self, public: str) -> bool:
        """Return whether the owner of a public key (its text, or a file) has signed this head.

        Raises:
            SigningError: there is no such key.
        """
        return signing.verify(self._signed_bytes(), self.signature, public)

    def to_json(self) -> str:
        """Return the head in the form in which a file keeps it."""
        known = {"store": self.store, "seq": self.seq, "hash": self.hash, "time": self.time}
        return json.dumps(known | ({"signature": self.signature} if self.signature else {}))

    def _signed_bytes(self) -> bytes:
        return dump_compact([_PURPOSE, self.store, self.seq, self.hash, self.time]).encode()


def parse(text: str | bytes) -> Head:
    """Parse a head. Heads of earlier versions have neither a time nor a signature.

    Raises:
        ValueError: the text is not a head.
    """
    try:
        data = json.loads(text)
        seq, digest = int(data["seq"]), str(data["hash"])
        more = str(data.get("store", "")), float(data.get("time", 0.0)), str(data.get("signature", ""))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise ValueError("not a head of an audit") from None
    return Head(seq, digest, *more)


def read(source: str) -> Head:
    """Read a head from a file, or from an http:// or https:// address.

    Raises:
        UsageError: the head cannot be read.
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
