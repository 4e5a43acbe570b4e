"""Ed25519 signatures: write key files, sign bytes, check signatures.

A private key is a PEM file (PKCS#8) that only its owner can read; `openssl genpkey -algorithm ed25519` writes one, too.
A public key and a signature are each one line of text: `ed25519:` and Base64. This needs the extra `stoker[sign]`.
"""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import Any

from stoker.errors import StokerError

PREFIX = "ed25519:"
_PUBLIC_BYTES, _SIGNATURE_BYTES = 32, 64
# A key file has a few hundred bytes; a wrong path may lead to a file of any size.
_MOST_BYTES = 16_384


class SigningError(StokerError, ValueError):
    """A key cannot be written, read or used, or a text is not a signature."""


def generate_key(path: str | os.PathLike[str]) -> str:
    """Write a new private key to `path` (mode 0600) and its public key to `path` + ".pub".

    Returns:
        The public key as text.

    Raises:
        SigningError: one of the files exists, or cannot be written.
    """
    place = Path(path)
    public_place = place.with_name(f"{place.name}.pub")
    serialization, ed25519 = _load_library()
    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = _encode(key.public_key().public_bytes_raw())
    if public_place.exists():
        raise SigningError(f"{public_place} exists already: choose another name for the new key")
    _create(place, pem, 0o600)
    _create(public_place, f"{public}\n".encode("ascii"), 0o644)
    return public


def public_key(key_path: str | os.PathLike[str]) -> str:
    """Return the public key of a private key file, as text.

    Raises:
        SigningError: the file is missing or holds no Ed25519 private key.
    """
    return _encode(_read_private_key(Path(key_path)).public_key().public_bytes_raw())


def sign(data: bytes, key_path: str | os.PathLike[str]) -> str:
    """Sign bytes with a private key file.

    Raises:
        SigningError: the file is missing or holds no Ed25519 private key.
    """
    return _encode(_read_private_key(Path(key_path)).sign(data))


def verify(data: bytes, signature: str, public: str | os.PathLike[str]) -> bool:
    """Return whether the owner of the public key made this signature of these bytes.

    Args:
        data: the bytes that were signed.
        signature: as `sign` returned it. Text that is not a signature counts as a wrong one.
        public: the key's text ("ed25519:..."), or the path of the file that holds it.

    Raises:
        SigningError: there is no such public key.
    """
    raw_key = _decode(read_public_key(public), _PUBLIC_BYTES)
    _, ed25519 = _load_library()
    from cryptography.exceptions import InvalidSignature

    raw = _decode(signature, _SIGNATURE_BYTES)
    if raw_key is None or raw is None:
        return False
    try:
        ed25519.Ed25519PublicKey.from_public_bytes(raw_key).verify(raw, data)
    except InvalidSignature:
        return False
    return True


def read_public_key(public: str | os.PathLike[str]) -> str:
    """Return a public key's text, given that text or the path of its file.

    Raises:
        SigningError: the value is neither.
    """
    text = os.fspath(public)
    if not text.startswith(PREFIX):
        text = _read(Path(text), "public key").decode("ascii", "replace").strip()
    if _decode(text, _PUBLIC_BYTES) is None:
        raise SigningError(
            f"{os.fspath(public)} is not an Ed25519 public key: expected '{PREFIX}' and 44 characters of Base64"
        )
    return text


def _load_library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError:
        raise SigningError('Signatures need cryptography: pip install "stoker[sign]"') from None
    return serialization, ed25519


def _read_private_key(path: Path) -> Any:
    serialization, ed25519 = _load_library()
    from cryptography.exceptions import UnsupportedAlgorithm

    pem = _read(path, "private key")
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError:
        raise SigningError(f"The private key {path} has a password: Stoker reads keys without one") from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise SigningError(f"{path} does not hold an Ed25519 private key in PEM format")
    return key


def _read(path: Path, what: str) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise SigningError(f"Cannot read the {what} {path}: {error.strerror or error}") from None
    if len(data) > _MOST_BYTES:
        raise SigningError(f"{path} is too large to be a {what}: more than {_MOST_BYTES:,} bytes")
    return data


def _create(path: Path, data: bytes, mode: int) -> None:
    """Write a new file, but never replace an existing one: a lost private key cannot be made again."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise SigningError(f"{path} exists already: choose another name for the new key") from None
    except OSError as error:
        raise SigningError(f"Cannot write {path}: {error.strerror or error}") from None
    with open(descriptor, "wb") as file:
        file.write(data)


def _encode(raw: bytes) -> str:
    return PREFIX + base64.b64encode(raw).decode("ascii")


def _decode(text: str, length: int) -> bytes | None:
    if not text.startswith(PREFIX):
        return None
    try:
        raw = base64.b64decode(text[len(PREFIX) :], validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) == length else None
