"""The machines of a job, and how many workers each one gets.

`a,b` divides the workers evenly; `a:4,b:2` says how many each machine has room for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stoker.errors import UsageError

# The agent on this machine is a child process; no ssh is involved.
LOCAL = "localhost"


@dataclass(frozen=True)
class Host:
    """A machine, as ssh or SLURM knows it; `slots` is how many workers fit on it, None for an even share."""

    name: str
    slots: int | None = None

    @property
    def address(self) -> str:
        """The name by which other workers reach the machine."""
        return self.name.rpartition("@")[2]


@dataclass(frozen=True)
class JobSize:
    """The number of workers: fixed, or as many as fit between `least` and `most`."""

    least: int
    most: int

    @property
    def is_elastic(self) -> bool:
        """Whether the job can continue with fewer workers."""
        return self.least < self.most


def parse_size(text: str) -> JobSize:
    """Read `4` or `2:8`.

    Raises:
        UsageError: the text is neither.
    """
    match = re.fullmatch(r"(\d+)(?::(\d+))?", text)
    least, most = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= least <= most:
        raise UsageError(f"-n {text!r}: give a number of workers such as 4, or a range such as 2:8")
    return JobSize(least, most)


def parse_hosts(text: str, option: str = "--hosts") -> list[Host]:
    """Read `a,b:4`, or one such machine per line.

    Raises:
        UsageError: a machine's name is invalid or given twice, or no machine is given.
    """
    hosts = [_parse_host(word, option) for word in re.split(r"[\s,]+", text.strip()) if word]
    names = [host.name for host in hosts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        count = names.count(twice)
        raise UsageError(
            f"{option} names {twice} more than once; for {count} workers there, write {twice}:{count}"
        )
    if not hosts:
        raise UsageError(f"{option} names no machine: give some, such as a,b or a:4,b:4")
    return hosts


def _parse_host(word: str, option: str) -> Host:
    match = re.fullmatch(r"((?:[\w.-]+@)?[A-Za-z0-9][\w.-]*)(?::(\d+))?", word)
    if match is None or match[2] == "0":
        raise UsageError(
            f"{option}: invalid machine {word!r}: give a name, or a name and a number of workers such as a:4"
        )
    return Host(match[1], int(match[2]) if match[2] else None)


def share_out(hosts: list[Host], size: JobSize) -> dict[str, int] | None:
    """Return the number of workers on each machine, in order; None if not even the smallest number fits."""
    is_limited = all(host.slots is not None for host in hosts)
    count = min(size.most, sum(host.slots or 0 for host in hosts)) if is_limited else size.most
    if not hosts or count < size.least:
        return None
    if is_limited:
        return _fill(hosts, count)
    open_hosts = [host for host in hosts if host.slots is None]
    fixed = _fill([host for host in hosts if host.slots is not None], count)
    left = count - sum(fixed.values())
    each, more = divmod(left, len(open_hosts))
    shares = fixed | {host.name: each + (i < more) for i, host in enumerate(open_hosts)}
    return {host.name: shares[host.name] for host in hosts if shares.get(host.name)}


def _fill(hosts: list[Host], count: int) -> dict[str, int]:
    """Fill the machines' slots in order until all `count` workers have one."""
    shares: dict[str, int] = {}
    for host in hosts:
        taken = min(host.slots or 0, count)
        count -= taken
        if taken:
            shares[host.name] = taken
    return shares
