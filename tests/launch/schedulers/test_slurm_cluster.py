"""A real SLURM of one node, started here with its own munge: a submitted job survives the kill of a worker."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.launch.support import HEAD, launch_command, read_notes, wait_for_notes
from tests.support import environment, wait_until, write_program

SBIN = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
MISSING = [
    name for name in ("munged", "slurmctld", "slurmd", "srun", "sbatch") if not shutil.which(name, path=SBIN)
]

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason="no SLURM (the packages slurm-wlm and munge)"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a SLURM of its own needs root"),
]

SETTINGS = """
ClusterName=stoker
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={home}/munge.socket
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool
SlurmctldPidFile={home}/slurmctld.pid
SlurmdPidFile={home}/slurmd.pid
SlurmctldLogFile={home}/slurmctld.log
SlurmdLogFile={home}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start SLURM; return the environment in which its commands find it."""
    home = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (home / name).mkdir()
    with socket.create_server(("", 0)) as one, socket.create_server(("", 0)) as other:
        ports = [server.getsockname()[1] for server in (one, other)]
    host = socket.gethostname().partition(".")[0]
    settings = SETTINGS.format(home=home, host=host, ports=ports, cpus=os.cpu_count())
    (home / "slurm.conf").write_text(settings)
    version = subprocess.run(
        ["slurmd", "-V"], env={"PATH": SBIN}, capture_output=True, text=True, check=True
    ).stdout
    # From this release on, SLURM can run without control groups.
    disabled = int(version.split()[1].partition(".")[0]) >= 23
    (home / "cgroup.conf").write_text("CgroupPlugin=disabled\n" if disabled else "")
    key = home / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    variables = environment() | {"PATH": SBIN, "SLURM_CONF": str(home / "slurm.conf")}
    options = [
        f"--{name}={home}/munge.{name.removesuffix('-file')}" for name in ("key-file", "pid-file", "log-file")
    ]
    munge = [
        "munged",
        "--foreground",
        "--force",
        *options,
        f"--seed-file={home}/seed",
        f"--socket={home}/munge.socket",
    ]
    started: list[subprocess.Popen[bytes]] = []
    with (home / "out").open("wb") as out:

        def start(*command: str) -> None:
            started.append(subprocess.Popen(command, env=variables, stdout=out, stderr=out))

        try:
            start(*munge)
            wait_until((home / "munge.socket").exists)
            start("slurmctld", "-D", "-i")
            start("slurmd", "-D", "-N", host)
            wait_until(lambda: _idle(variables) or any(p.poll() is not None for p in started))
            if not _idle(variables):
                pytest.skip(f"SLURM does not start: {(home / 'out').read_text()[-300:]}")
            yield variables
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()


def _idle(variables: dict[str, str]) -> bool:
    done = subprocess.run(
        ["sinfo", "-h", "-o", "%T"], env=variables, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() == "idle"


def test_a_submitted_job_starts_again_when_a_worker_is_killed(tmp_path: Path, slurm: dict[str, str]) -> None:
    program = """
note("step", os.environ.get("SLURM_STEP_ID", ""))
if restart == 0:
    if rank == 1: os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1000)
note("end", cluster["cluster"]["worker"])
"""
    write_program(tmp_path, HEAD + program)
    submitted = subprocess.run(
        launch_command("-n", "2", "--scheduler", "slurm", "train.py"),
        cwd=tmp_path,
        env=slurm,
        capture_output=True,
        text=True,
        check=False,
    )
    assert submitted.returncode == 0, submitted.stderr
    number = submitted.stderr.split()[-1]
    wait_for_notes(tmp_path, "end", 2, restart=1)
    log = tmp_path / f"train-{number}.log"
    wait_until(lambda: _state(number, slurm) in ("COMPLETED", ""))
    assert "worker 1 was killed by SIGKILL; restarting all workers (1 of 3)" in log.read_text()
    # The workers are children of an agent that SLURM started as a step of the job.
    assert read_notes(tmp_path, "step")[1, 0] == "0"


def test_tasks_of_srun_are_workers(tmp_path: Path, slurm: dict[str, str]) -> None:
    write_program(tmp_path, HEAD + "note('end', cluster['cluster']['worker'])\n")
    command = ["srun", "-n", "2", *launch_command("--scheduler", "slurm", "train.py")]
    done = subprocess.run(command, cwd=tmp_path, env=slurm, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ends = read_notes(tmp_path, "end")
    assert set(ends) == {(0, 0), (0, 1)}
    assert ends[0, 0] == ends[0, 1]


def _state(number: str, variables: dict[str, str]) -> str:
    command = ["squeue", "-h", "-j", number, "-o", "%T", "--states=all"]
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=False).stdout.strip()
