"""SLURM: a batch script to submit, the allocation it runs in, and the tasks of `srun`.

The script runs one supervisor on the first node, which reaches an agent on each node with `srun`. When SLURM warns of
the time limit or a preemption, all workers get SIGTERM; when they have saved and exited, the script requeues the job.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from stoker.errors import UsageError
from stoker.launch.hosts import Host, JobSize
from stoker.launch.limits import PREEMPTED
from stoker.launch.links import AGENT, Hear, Link, ProcessLink
from stoker.launch.place import WorkerPlace
from stoker.launch.plan import LaunchPlan, plan_one_worker
from stoker.launch.request import JobRequest
from stoker.launch.schedulers.base import Scheduler
from stoker.units import quantity

# Ports below those of outgoing connections. Jobs on the same nodes get different ones, derived from the jobs' numbers.
_FIRST_PORT, _PORTS = 13_000, 18_000
_MOST_ON_A_NODE = 64
# Time to end, after the time to save.
_AFTER_GRACE_S = 30

_SCRIPT = """#!/bin/bash
{options}

{command} &
job=$!
# Only this shell gets SLURM's warning; the supervisor passes it on to the workers.
trap 'warned=1; kill -TERM "$job"' TERM USR1
warned=1
while [ "$warned" ]; do
    warned=
    # A signal ends `wait`, not the job.
    wait "$job"
    code=$?
done
# The workers saved and exited: continue later.
if [ "$code" = {preempted} ]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
"""


class Slurm(Scheduler):
    """Jobs submitted with `sbatch`, agents started with `srun`, or workers that are tasks of `srun`."""

    name = "slurm"
    takes_submissions = True
    restart_variable = "SLURM_RESTART_COUNT"

    def __init__(
        self, variables: Mapping[str, str], sbatch: Sequence[str] = (), python: str | None = None
    ) -> None:
        super().__init__(variables)
        self._sbatch = sbatch
        self._python = python

    @classmethod
    def add_options(cls, parser: argparse.ArgumentParser) -> None:
        """Add the options for sbatch."""
        parser.add_argument(
            "--sbatch",
            metavar="OPTION",
            action="append",
            default=[],
            help="slurm: an option for sbatch; repeatable",
        )

    @classmethod
    def from_options(cls, options: argparse.Namespace, variables: Mapping[str, str]) -> Scheduler:
        """Make the scheduler from the options; those for sbatch must look like options."""
        wrong = next((text for text in options.sbatch if not text.startswith("-") or "\n" in text), None)
        if wrong is not None:
            raise UsageError(
                f"--sbatch {wrong!r}: give an option of sbatch, such as --sbatch=--partition=gpu"
            )
        return cls(variables, options.sbatch, options.python)

    @classmethod
    def has_started(cls, variables: Mapping[str, str]) -> bool:
        """Return whether this is a task of a step. A batch script has a rank, but belongs to no step."""
        return "SLURM_STEP_ID" in variables and "SLURM_PROCID" in variables

    def find_place(self) -> WorkerPlace:
        """Return the task's place. Tasks fill the nodes in order, because `srun` distributes them in blocks.

        TensorFlow's own resolver divides by the number of GPUs and fails if there are none.
        """
        nodes = parse_node_list(self.get_variable("SLURM_STEP_NODELIST"))
        counts = parse_task_counts(self.get_variable("SLURM_STEP_TASKS_PER_NODE"))
        if len(nodes) != len(counts):
            raise UsageError(
                f"slurm: the step has {quantity(len(nodes), 'node')}, but task counts for {len(counts)}"
            )
        number = self.get_number("SLURM_JOB_ID")
        first = _FIRST_PORT + number * _MOST_ON_A_NODE % (_PORTS - _MOST_ON_A_NODE)
        addresses = [
            f"{node}:{first + local}"
            for node, count in zip(nodes, counts, strict=True)
            for local in range(count)
        ]
        rank = self.get_number("SLURM_PROCID")
        if rank >= len(addresses):
            raise UsageError(
                f"slurm: SLURM_PROCID is {rank}, but the step has only {quantity(len(addresses), 'task')}"
            )
        return WorkerPlace(rank, addresses)

    def must_submit(self) -> bool:
        """Return whether this is outside an allocation, where a job is submitted."""
        return not {"SLURM_JOB_ID", "SLURM_JOB_NODELIST"} <= set(self._variables)

    def plan(self, request: JobRequest) -> LaunchPlan:
        """Plan one worker in a step of several tasks; elsewhere in an allocation, an agent on each node."""
        if self.has_started(self._variables) and self._variables.get("SLURM_STEP_NUM_TASKS") != "1":
            return plan_one_worker(self.find_place())
        hosts = self.list_nodes()
        tasks = sum(host.slots or 0 for host in hosts)
        return LaunchPlan(request.size or JobSize(tasks or 1, tasks or 1), hosts, self.connect)

    def list_nodes(self) -> list[Host]:
        """Return the nodes of the allocation, each with room for as many workers as it has tasks."""
        names = parse_node_list(self._variables["SLURM_JOB_NODELIST"])
        tasks = self._variables.get("SLURM_TASKS_PER_NODE")
        counts = parse_task_counts(tasks) if tasks else []
        if len(counts) != len(names):
            return [Host(name) for name in names]
        return [Host(name, count) for name, count in zip(names, counts, strict=True)]

    def connect(self, host: Host, hear: Hear) -> Link:
        """Start an agent on a node, as a step of its own."""
        where = ["--nodes=1", "--ntasks=1", f"--nodelist={host.name}", "--overlap", "--unbuffered"]
        # The workers may use all that the job has on the node.
        options = ["--mem=0", "--kill-on-bad-exit=0", "--input=all", "--quiet"]
        return ProcessLink(["srun", *where, *options, self._python or sys.executable, "-m", AGENT], hear)

    def build_submission(self, request: JobRequest) -> str:
        """Return the batch script."""
        workers = str(request.fixed_size)
        options = [
            f"--job-name={request.job_name}",
            f"--ntasks={workers}",
            "--output=%x-%j.log",
            "--open-mode=append",
            "--requeue",
            f"--signal=B:TERM@{int(request.limits.grace_s) + _AFTER_GRACE_S}",
            *self._sbatch,
        ]
        python = ["--python", self._python] if self._python else []
        restarts = ["--max-restarts", str(request.limits.max_restarts)]
        arguments = request.build_arguments(self.name, "-n", workers, *restarts, *python)
        return _SCRIPT.format(
            options="\n".join(f"#SBATCH {option}" for option in options),
            command=shlex.join([sys.executable, "-m", "stoker", *arguments]),
            preempted=PREEMPTED,
        )

    def submit(self, request: JobRequest, directory: Path) -> str:
        """Write the batch script, and submit it with sbatch."""
        path = directory / "job.sbatch"
        script = self.build_submission(request)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script, encoding="utf-8")
        command = ["sbatch", "--parsable", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise UsageError(
                "sbatch is not installed here: write the script with --write job.sbatch"
            ) from None
        if done.returncode:
            raise UsageError(f"sbatch refused {path}: {done.stderr.strip()}")
        return f"submitted {path} as job {done.stdout.strip().partition(';')[0]}"


def parse_node_list(text: str) -> list[str]:
    """Read SLURM's compact list of nodes, such as `gpu[01-03,7],login`.

    Raises:
        UsageError: the text is not such a list.
    """
    found: list[str] = []
    # A comma inside brackets does not end a word.
    words = re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text)
    for word in words:
        match = re.fullmatch(r"([^\[\]]*)(?:\[([\d,-]+)\]([^\[\]]*))?", word)
        if match is None:
            raise UsageError(f"slurm: {text!r} is not a list of nodes")
        prefix, ranges, suffix = match[1], match[2], match[3] or ""
        numbers = [""] if ranges is None else [n for part in ranges.split(",") for n in _expand(part)]
        found += [f"{prefix}{number}{suffix}" for number in numbers]
    if not found or ",".join(words) != text:
        raise UsageError(f"slurm: {text!r} is not a list of nodes")
    return found


def _expand(part: str) -> list[str]:
    """Return the numbers in `01-03`, with leading zeros."""
    first, _, last = part.partition("-")
    if not first:
        return []
    return [f"{n:0{len(first)}d}" for n in range(int(first), int(last or first) + 1)]


def parse_task_counts(text: str) -> list[int]:
    """Read SLURM's number of tasks on each node, such as `2(x3),1`.

    Raises:
        UsageError: the text is not such a list.
    """
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            raise UsageError(f"slurm: {text!r} is not a list of task counts")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts
