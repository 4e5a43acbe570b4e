"""SLURM: a batch script to submit, and the nodes of the allocation that it runs in.

The script runs one supervisor on the first node, which reaches an agent on each node with `srun`. SLURM's warning
before the time limit or a preemption goes to all workers as SIGTERM; when they have saved and left, the job is queued
again.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping

from stoker.errors import UsageError
from stoker.launch.engines.request import Request
from stoker.launch.environments.slurm import hostnames, task_counts
from stoker.launch.hosts import Host
from stoker.launch.limits import PREEMPTED

_SCRIPT = """#!/bin/bash
{options}

{command} &
job=$!
# The warning comes to this shell alone; the workers get it from the supervisor.
trap 'warned=1; kill -TERM "$job"' TERM
warned=1
while [ "$warned" ]; do
    warned=
    # A signal ends `wait`, not the job.
    wait "$job"
    code=$?
done
# Saved and left: the rest later.
if [ "$code" = {preempted} ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
"""


def script(request: Request, own: list[str]) -> str:
    """A batch script; `own` are options for sbatch such as `--partition=gpu`."""
    # Time to save, and then some to end.
    warning = int(request.limits.grace_s) + 30
    options = [
        f"--job-name={request.job_name}",
        f"--ntasks={request.workers}",
        "--output=%x-%j.log",
        "--open-mode=append",
        "--requeue",
        f"--signal=B:TERM@{warning}",
        *own,
    ]
    wrong = next((option for option in own if not option.startswith("-") or "\n" in option), None)
    if wrong is not None:
        raise UsageError(f"--sbatch {wrong!r}: give an option of sbatch, such as --sbatch=--partition=gpu")
    launch = ["-m", "stoker", "launch", "--engine", "slurm", "-n", str(request.workers)]
    words = [sys.executable, *launch, *request.limit_options(), *request.options, *request.words]
    return _SCRIPT.format(
        options="\n".join(f"#SBATCH {option}" for option in options),
        command=shlex.join(words),
        preempted=PREEMPTED,
    )


def submit(path: str) -> str:
    """The number SLURM gives a batch script.

    Raises:
        UsageError: there is no SLURM, or it does not take the script.
    """
    try:
        done = subprocess.run(["sbatch", "--parsable", path], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise UsageError("there is no sbatch here: write the script with --write job.sbatch") from None
    if done.returncode:
        raise UsageError(f"sbatch refused {path}: {done.stderr.strip()}")
    return done.stdout.strip().partition(";")[0]


def allocated(variables: Mapping[str, str]) -> bool:
    """Whether this is inside an allocation."""
    return "SLURM_JOB_ID" in variables and "SLURM_JOB_NODELIST" in variables


def nodes(variables: Mapping[str, str]) -> list[Host]:
    """The nodes of the allocation, with as many workers as each has tasks."""
    names = hostnames(variables["SLURM_JOB_NODELIST"])
    tasks = variables.get("SLURM_TASKS_PER_NODE")
    counts = task_counts(tasks) if tasks else []
    if len(counts) != len(names):
        return [Host(name) for name in names]
    return [Host(name, count) for name, count in zip(names, counts, strict=True)]
