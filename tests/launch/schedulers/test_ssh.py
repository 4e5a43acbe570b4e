"""`--hosts` through a real sshd on this machine, with keys of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launch.support import is_alive, launch, read_notes, start_job, wait_for_notes
from tests.support import wait_until

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or ""

pytestmark = [
    pytest.mark.skipif(not SSHD, reason="no sshd (the package openssh-server)"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc"),
]


@pytest.fixture(scope="module")
def ssh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start sshd; return the ssh command that logs in."""
    home = tmp_path_factory.mktemp("sshd")
    home.chmod(0o700)
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(home / name)], check=True)
    (home / "authorized").write_bytes((home / "user.pub").read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    settings = (
        f"Port {port}\nListenAddress 127.0.0.1\nListenAddress 127.0.0.2\nHostKey {home}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {home}/authorized\nStrictModes no\nPermitRootLogin prohibit-password\n"
    )
    (home / "config").write_text(settings)
    if os.geteuid() == 0:
        # The directory where sshd drops its privileges; on Debian its service creates it.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    daemon = subprocess.Popen(
        [SSHD, "-D", "-e", "-f", str(home / "config")], stderr=subprocess.PIPE, text=True
    )
    assert daemon.stderr is not None
    said = daemon.stderr.readline()
    if "listening" not in said:
        daemon.wait()
        pytest.skip(f"sshd does not start: {said.strip()}")
    options = f"-p {port} -i {home}/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"
    yield f"ssh -F none -o LogLevel=ERROR {options}"
    daemon.kill()
    daemon.communicate()


def test_workers_behind_ssh_start_again_when_one_is_killed(tmp_path: Path, ssh: str) -> None:
    program = """
note("seen", os.environ.get("SSH_CONNECTION", "") and os.getcwd() + " " + cluster["cluster"]["worker"][rank])
if restart == 0:
    if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1000)
print("worker", rank)
"""
    outcome = launch(tmp_path, program, "-n", "2", "--hosts", "127.0.0.1,127.0.0.2", "--ssh", ssh)
    assert (outcome.code, sorted(outcome.stdout.splitlines())) == (0, ["[0] worker 0", "[1] worker 1"])
    assert "2 workers on 2 machines" in outcome.stderr
    assert "worker 1 on 127.0.0.2 was killed by SIGKILL; restarting all workers (1 of 3)" in outcome.stderr
    where = read_notes(tmp_path, "seen")
    assert where[1, 0].startswith(f"{tmp_path} 127.0.0.1:")
    assert where[1, 1].startswith(f"{tmp_path} 127.0.0.2:")


def test_a_lost_machine_is_left_out_and_nothing_goes_on_there(tmp_path: Path, ssh: str) -> None:
    program = """
note("size", size)
while not pathlib.Path("go").exists(): time.sleep(0.01)
"""
    # The second machine can be reached only once, as if it were switched off later.
    once = tmp_path / "once"
    once.write_text(
        f'#!/bin/sh\ncase "$*" in *127.0.0.2*) mkdir {tmp_path}/used || exit 255;; esac\nexec {ssh} "$@"\n'
    )
    once.chmod(0o755)
    words = ("-n", "1:2", "--hosts", "127.0.0.1:1,127.0.0.2:1", "--ssh", str(once))
    with start_job(tmp_path, program, *words) as job:
        pids = wait_for_notes(tmp_path, "pid", 2)
        wait_for_notes(tmp_path, "size", 2)
        client = next(pid for pid in children(job.pid) if "127.0.0.2" in command_line(pid))
        os.kill(client, 9)
        wait_for_notes(tmp_path, "size", 1, restart=1)
        wait_until(lambda: not any(is_alive(int(pids[0, rank])) for rank in range(2)))
        (tmp_path / "go").touch()
        _, stderr = job.communicate()
    assert job.returncode == 0
    assert read_notes(tmp_path, "size") == {(0, 0): "2", (0, 1): "2", (1, 0): "1"}
    assert "lost the agent on 127.0.0.2" in stderr
    assert "cannot reach 127.0.0.2: " in stderr


def test_a_machine_that_cannot_be_reached_gives_one_line(tmp_path: Path, ssh: str) -> None:
    wrong = ssh.replace("-i ", "-i /no/such/key -i /no/such/")
    outcome = launch(tmp_path, "", "-n", "2", "--hosts", "127.0.0.1", "--ssh", wrong)
    assert outcome.code == 1
    assert "stoker: cannot reach 127.0.0.1: " in outcome.stderr
    assert "Permission denied" in outcome.stderr.splitlines()[-1]


def children(process: int) -> list[int]:
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def command_line(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text().replace("\0", " ")
