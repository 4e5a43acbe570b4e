"""Only files have content: what never ends is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stoker.errors import ArgumentError
from stoker.tracking.store.fingerprints import hash_path


def test_devices_and_pipes_are_no_artifacts(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for path in (Path("/dev/zero"), tmp_path / "pipe", tmp_path / "zeros"):
        with pytest.raises(ArgumentError, match="neither a file nor a directory"):
            hash_path(path)
    (tmp_path / "file").write_text("x")
    assert hash_path(tmp_path).size == 1
