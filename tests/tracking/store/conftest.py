"""Every test of the store runs on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.tracking.store import address, writer
from stoker.tracking.store.address import Address
from tests.tracking.store import databases


@pytest.fixture(scope="session")
def postgresql() -> Iterator[databases.Server]:
    with databases.server() as server:
        yield server


@pytest.fixture
def own_writers(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Address, writer.StoreWriter]]:
    """Writers of a test end with it."""
    made: dict[Address, writer.StoreWriter] = {}
    monkeypatch.setattr(writer, "_writers", made)
    yield made
    for one in made.values():
        one.close()


def flush() -> None:
    """Wait until everything this process has logged is in its store."""
    for one in writer._writers.values():
        one.flush()


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Address:
    """The address of a store that does not exist yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if request.param == "sqlite":
        return address.parse(f"sqlite:///{tmp_path / 'kept' / 'stoker.db'}")
    server: databases.Server = request.getfixturevalue("postgresql")
    return address.parse(server.create())
