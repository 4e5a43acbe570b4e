"""Ed25519 signatures: key files, signing bytes, checking a signature."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from stoker import signing
from stoker.signing import SigningError


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "release.key"
    signing.generate_key(path)
    return path


def test_a_signature_verifies_with_its_key_as_text_and_as_a_file(key: Path) -> None:
    signature = signing.sign(b"answers", key)
    public = signing.public_key(key)
    assert Path(f"{key}.pub").read_text() == f"{public}\n"
    assert signing.verify(b"answers", signature, public)
    assert signing.verify(b"answers", signature, f"{key}.pub")


def test_other_bytes_other_keys_and_other_text_do_not_verify(key: Path, tmp_path: Path) -> None:
    signature = signing.sign(b"answers", key)
    public = signing.public_key(key)
    assert not signing.verify(b"answer", signature, public)
    assert not signing.verify(b"answers", signature, signing.generate_key(tmp_path / "other.key"))
    for text in ("", "ed25519:", "ed25519:!!!!", "rsa:AAAA", signature[:-4], signature + "AAAA", "ed25519:é"):
        assert not signing.verify(b"answers", text, public)


def test_only_the_owner_reads_the_private_key_and_no_key_is_replaced(key: Path) -> None:
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    before = key.read_bytes()
    with pytest.raises(SigningError, match="exists already"):
        signing.generate_key(key)
    Path(f"{key}.pub").unlink()
    with pytest.raises(SigningError, match="exists already"):
        signing.generate_key(key)
    assert key.read_bytes() == before


def test_what_is_no_key_is_refused_in_one_line(key: Path, tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    for content in (b"", b"\xff" * 100, b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"):
        junk.write_bytes(content)
        with pytest.raises(SigningError, match="does not hold an Ed25519 private key") as refused:
            signing.sign(b"", junk)
        assert "\n" not in str(refused.value)
        with pytest.raises(SigningError, match="not an Ed25519 public key"):
            signing.verify(b"", "", junk)
    with pytest.raises(SigningError, match=r"Cannot read the private key .*: No such file"):
        signing.sign(b"", tmp_path / "none")
    with pytest.raises(SigningError, match=r"Cannot read the public key .*: Is a directory"):
        signing.verify(b"", "", tmp_path)
    with pytest.raises(SigningError, match="Cannot write"):
        signing.generate_key(tmp_path / "none" / "key")
    junk.write_bytes(b"x" * 20_000)
    with pytest.raises(SigningError, match="too large"):
        signing.sign(b"", junk)


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519, x25519

    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path = tmp_path / "key"
    path.write_bytes(
        x25519.X25519PrivateKey.generate().private_bytes(pem, pkcs8, serialization.NoEncryption())
    )
    with pytest.raises(SigningError, match="does not hold an Ed25519"):
        signing.sign(b"", path)
    locked = serialization.BestAvailableEncryption(b"secret")
    path.write_bytes(ed25519.Ed25519PrivateKey.generate().private_bytes(pem, pkcs8, locked))
    with pytest.raises(SigningError, match="has a password"):
        signing.sign(b"", path)


def test_without_cryptography_the_line_names_the_extra(key: Path) -> None:
    program = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from stoker import signing\n"
        f"try: signing.sign(b'', {str(key)!r})\n"
        "except signing.SigningError as error: print(error)"
    )
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout == 'Signatures need cryptography: pip install "stoker[sign]"\n'
