"""SLURM without SLURM: the batch script, the allocation's nodes, the places of tasks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.doctor.measure.launch import Target
from stoker.errors import UsageError
from stoker.launch.hosts import Host, JobSize
from stoker.launch.limits import LaunchLimits
from stoker.launch.request import JobRequest
from stoker.launch.schedulers import Slurm, detect
from stoker.launch.schedulers.slurm import parse_node_list, parse_task_counts

REQUEST = JobRequest(Target("jobs/Train_1.py", ["--epochs", "3"]), LaunchLimits(grace_s=90), JobSize(4, 4))
STEP = {
    "SLURM_JOB_ID": "4711",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_STEP_NODELIST": "gpu[08-10]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
}
ALLOCATION = {"SLURM_JOB_ID": "4711", "SLURM_JOB_NODELIST": "gpu[1-2]", "SLURM_TASKS_PER_NODE": "3(x2)"}


def test_a_batch_script_is_valid_and_says_what_to_run(tmp_path: Path) -> None:
    text = Slurm({}, ["--partition=gpu"]).build_submission(REQUEST)
    path = tmp_path / "job.sbatch"
    path.write_text(text)
    subprocess.run(["bash", "-n", str(path)], check=True)
    assert "#SBATCH --ntasks=4\n" in text
    assert "#SBATCH --signal=B:TERM@120\n" in text
    assert "#SBATCH --partition=gpu\n" in text
    assert " launch --scheduler slurm -n 4 --max-restarts 3 --grace 90s jobs/Train_1.py --epochs 3 &" in text


def test_a_submitted_job_keeps_the_options_of_its_workers() -> None:
    request = JobRequest(
        REQUEST.target, LaunchLimits(max_restarts=5), JobSize(2, 2), ledger=True, standby=True
    )
    text = Slurm({}, python="/opt/python").build_submission(request)
    options = "-n 2 --max-restarts 5 --python /opt/python --ledger --standby"
    assert f" launch --scheduler slurm {options} jobs/Train_1.py --epochs 3 &" in text


@pytest.mark.parametrize(
    ("code", "requeued", "warning"),
    [(0, False, "TERM"), (75, True, "TERM"), (75, True, "USR1"), (3, False, "TERM")],
)
def test_the_script_requeues_a_preempted_job(tmp_path: Path, code: int, requeued: bool, warning: str) -> None:
    """The real script, with `stoker launch` replaced by a program that sends SLURM's warning to the script."""
    text = Slurm({}).build_submission(REQUEST)
    command = next(line for line in text.splitlines() if " -m stoker launch " in line)
    program = f"""
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit({code}))
os.kill(os.getppid(), signal.SIG{warning})
signal.pause()
"""
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "scontrol").write_text("#!/bin/sh\necho $@ > requeued\n")
    (tmp_path / "scontrol").chmod(0o755)
    script = text.replace(command, f"{sys.executable} program.py &")
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "17"}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == code
    assert (tmp_path / "requeued").exists() is requeued


def test_a_task_of_srun_knows_the_node_of_every_rank() -> None:
    place = detect(STEP).find_place()
    assert (place.rank, place.size) == (3, 5)
    hosts = [address.rpartition(":")[0] for address in place.addresses]
    assert hosts == ["gpu08", "gpu08", "gpu09", "gpu09", "gpu10"]
    assert len(set(place.addresses)) == 5
    other = detect(STEP | {"SLURM_JOB_ID": "4712", "SLURM_PROCID": "0"}).find_place()
    assert not set(other.addresses) & set(place.addresses)


def test_a_batch_script_is_not_a_task() -> None:
    assert not Slurm.has_started({"SLURM_JOB_ID": "1", "SLURM_PROCID": "0", "SLURM_NTASKS": "4"})


def test_an_allocation_has_a_worker_for_each_task_unless_told_otherwise() -> None:
    slurm = Slurm(ALLOCATION)
    assert not slurm.must_submit()
    plan = slurm.plan(JobRequest(REQUEST.target, REQUEST.limits))
    assert (plan.hosts, plan.size, plan.place) == ([Host("gpu1", 3), Host("gpu2", 3)], JobSize(6, 6), None)
    assert slurm.plan(REQUEST).size == JobSize(4, 4)


def test_a_step_of_several_tasks_has_one_worker_in_each() -> None:
    variables = ALLOCATION | STEP
    place = Slurm(variables).plan(REQUEST).place
    assert place is not None
    assert place.rank == 3
    # `srun` around the supervisor itself: one task, which reaches the nodes.
    assert Slurm(variables | {"SLURM_STEP_NUM_TASKS": "1"}).plan(REQUEST).place is None


def test_restarts_are_those_that_slurm_counts() -> None:
    assert Slurm(ALLOCATION).count_restarts() == 0
    assert Slurm(ALLOCATION | {"SLURM_RESTART_COUNT": "2", "STOKER_RESTART": "7"}).count_restarts() == 2


def test_a_job_outside_an_allocation_is_submitted() -> None:
    assert Slurm({}).must_submit()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node1", ["node1"]),
        ("gpu[01-03,7],login", ["gpu01", "gpu02", "gpu03", "gpu7", "login"]),
        ("a[9-11]-ib,b", ["a9-ib", "a10-ib", "a11-ib", "b"]),
    ],
)
def test_lists_of_nodes_as_slurm_writes_them(text: str, names: list[str]) -> None:
    assert parse_node_list(text) == names


@pytest.mark.parametrize("text", ["", "a[", "a[x]", "a[1]b[2]"])
def test_an_invalid_list_of_nodes_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a list of nodes"):
        parse_node_list(text)


@given(st.lists(st.tuples(st.integers(1, 99), st.integers(1, 5)), min_size=1))
def test_numbers_of_tasks_as_slurm_writes_them(runs: list[tuple[int, int]]) -> None:
    text = ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in runs)
    assert parse_task_counts(text) == [count for count, times in runs for _ in range(times)]
