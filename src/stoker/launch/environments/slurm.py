"""A task of `srun`. TensorFlow's own resolver divides by the number of GPUs, and fails where there are none."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stoker.errors import UsageError
from stoker.launch.environments.place import Environment, Place

# Below the ports that outgoing connections take; jobs on the same nodes differ by their number.
_FIRST_PORT, _PORTS = 13_000, 18_000
_MOST_ON_A_NODE = 64


class Slurm(Environment):
    """Ranks and nodes as SLURM numbers them; ports follow from the job's number."""

    name = "slurm"

    @classmethod
    def here(cls, variables: Mapping[str, str]) -> bool:
        """In a task of a step. A batch script is in no step, though it has a rank."""
        return "SLURM_STEP_ID" in variables and "SLURM_PROCID" in variables

    def place(self) -> Place:
        """Tasks fill the nodes in order, as `srun` deals them out in blocks."""
        nodes = hostnames(self.value("SLURM_STEP_NODELIST"))
        counts = task_counts(self.value("SLURM_STEP_TASKS_PER_NODE"))
        if len(nodes) != len(counts):
            raise UsageError(f"slurm: {len(nodes)} nodes, but numbers of tasks for {len(counts)}")
        job = self.number("SLURM_JOB_ID")
        first = _FIRST_PORT + job * _MOST_ON_A_NODE % (_PORTS - _MOST_ON_A_NODE)
        addresses = [
            f"{node}:{first + local}"
            for node, count in zip(nodes, counts, strict=True)
            for local in range(count)
        ]
        rank = self.number("SLURM_PROCID")
        if rank >= len(addresses):
            raise UsageError(f"slurm: task {rank} of a step of {len(addresses)}")
        return Place(rank, addresses)


def hostnames(text: str) -> list[str]:
    """The nodes in `gpu[01-03,7],login`, as SLURM writes them.

    Raises:
        UsageError: it is no such list.
    """
    found: list[str] = []
    # A comma inside brackets belongs to the node.
    words = re.findall(r"(?:[^,\[\]]|\[[^\]]*\])+", text)
    for word in words:
        match = re.fullmatch(r"([^\[\]]*)(?:\[([\d,-]+)\]([^\[\]]*))?", word)
        if match is None:
            raise UsageError(f"slurm: {text!r} is not a list of nodes")
        prefix, ranges, suffix = match[1], match[2], match[3] or ""
        numbers = [""] if ranges is None else [n for part in ranges.split(",") for n in _numbers(part)]
        found += [f"{prefix}{number}{suffix}" for number in numbers]
    if not found or ",".join(words) != text:
        raise UsageError(f"slurm: {text!r} is not a list of nodes")
    return found


def _numbers(part: str) -> list[str]:
    first, _, last = part.partition("-")
    if not first:
        return []
    return [f"{n:0{len(first)}d}" for n in range(int(first), int(last or first) + 1)]


def task_counts(text: str) -> list[int]:
    """The tasks on each node, in order, in `2(x3),1`.

    Raises:
        UsageError: it is no such list.
    """
    counts: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            raise UsageError(f"slurm: {text!r} does not say how many tasks each node has")
        counts += [int(match[1])] * int(match[2] or 1)
    return counts
