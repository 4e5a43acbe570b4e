"""Stores to test with: a file, and a database in a real PostgreSQL that the tests start on loopback."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import wait_until

# Debian keeps the server's programs out of the path.
_DEBIAN = Path("/usr/lib/postgresql")
_UNPRIVILEGED = ("postgres", "nobody")


class Server:
    """A PostgreSQL server in a temporary directory, run by an unprivileged user."""

    def __init__(self, programs: Path, directory: Path, user: str | None) -> None:
        self._programs = programs
        self._data = directory / "data"
        self._user = user
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self.port = _free_port()
        self._run("initdb", "-D", str(self._data), "-A", "trust", "-U", "stoker", "-E", "UTF8", "--no-sync")

    @property
    def url(self) -> str:
        return f"postgresql://stoker@127.0.0.1:{self.port}"

    def start(self) -> None:
        settings = [
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            "unix_socket_directories=",
            "fsync=off",
        ]
        settings += ["shared_buffers=16MB", "max_connections=60", "autovacuum=off"]
        command = [str(self._programs / "postgres"), "-D", str(self._data)]
        command += [word for setting in settings for word in ("-c", setting)]
        self._process = subprocess.Popen(
            command,
            user=self._user,
            cwd=self._directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._ready)

    def stop(self, how: str = "fast") -> None:
        """`fast` lets transactions go, `immediate` is a crash."""
        self._run("pg_ctl", "-D", str(self._data), "-m", how, "-w", "stop")
        assert self._process is not None
        self._process.wait()

    def create(self) -> str:
        """The URL of a fresh database."""
        import psycopg

        name = f"test_{secrets.token_hex(6)}"
        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"{self.url}/{name}"

    def _ready(self) -> bool:
        command = [str(self._programs / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, check=False).returncode == 0

    def _run(self, name: str, *words: str) -> None:
        command = [str(self._programs / name), *words]
        subprocess.run(command, user=self._user, cwd=self._directory, check=True, capture_output=True)


@contextmanager
def server() -> Iterator[Server]:
    """A running server.

    Skips the test where there can be none.
    """
    programs = _programs()
    if programs is None:
        pytest.skip("no PostgreSQL: install the package postgresql")
    user = next((name for name in _UNPRIVILEGED if _exists(name)), None) if os.getuid() == 0 else None
    if os.getuid() == 0 and user is None:
        pytest.skip("PostgreSQL does not run as root, and there is no user to run it as")
    directory = Path(tempfile.mkdtemp(prefix="stoker-postgresql-"))
    try:
        if user is not None:
            shutil.chown(directory, user)
        made = Server(programs, directory, user)
        made.start()
        try:
            yield made
        finally:
            made.stop("immediate")
    finally:
        shutil.rmtree(directory)


def _programs() -> Path | None:
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    newest = sorted(_DEBIAN.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return newest[-1].parent if newest else None


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
