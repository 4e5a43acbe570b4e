"""`--discover`: a real command, whose answers change."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.errors import UsageError
from stoker.launch.discovery import Discovery, discover_hosts
from stoker.launch.events import DiscoveryFailed, EventQueue, HostsChanged
from stoker.launch.hosts import Host
from tests.support import HANGS_S, wait_until


def test_only_a_new_answer_is_an_event(tmp_path: Path) -> None:
    rooms, runs = tmp_path / "rooms", tmp_path / "runs"
    rooms.write_text("a:2\n")
    script = tmp_path / "machines.sh"
    script.write_text(f"#!/bin/sh\necho >> {runs}\ncat {rooms}\n")
    script.chmod(0o755)
    inbox = EventQueue()
    discovery = Discovery(str(script), inbox, [Host("a", 2)], every_s=0.001)
    try:
        wait_for_runs(runs, 2)
        assert inbox.get(0) is None
        rooms.unlink()
        failed = inbox.get(HANGS_S)
        assert isinstance(failed, DiscoveryFailed)
        assert failed.why.startswith(f"--discover '{script}' failed with exit code 1: ")
        wait_for_runs(runs, 2)
        assert inbox.get(0) is None
        (tmp_path / "new").write_text("a:2\nb:1\n")
        (tmp_path / "new").rename(rooms)
        assert inbox.get(HANGS_S) == HostsChanged([Host("a", 2), Host("b", 1)])
    finally:
        discovery.close()


def wait_for_runs(runs: Path, more: int) -> None:
    """Wait until the command has run so many times more."""

    def count() -> int:
        return len(runs.read_text()) if runs.exists() else 0

    until = count() + more
    wait_until(lambda: count() >= until)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("false", "--discover 'false' failed with exit code 1: no error message"),
        ("echo a", "--discover 'echo a' gives no number of workers for a: print it as a:4"),
        ("true", "--discover 'true' names no machine: give some, such as a,b or a:4,b:4"),
    ],
)
def test_a_command_that_names_no_machines_gives_one_line(command: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        discover_hosts(command)
    assert str(error.value) == said


def test_a_command_that_does_not_exist_gives_one_line() -> None:
    with pytest.raises(UsageError, match=r"^--discover: cannot run 'no-such-command': "):
        discover_hosts("no-such-command")
