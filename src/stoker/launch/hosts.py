"""Which machines there are, and how many workers go where.

`a,b` shares the workers out evenly; `a:4,b:2` says how many each machine has room for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stoker.errors import UsageError

# Workers here are children of the agent here, without ssh.
LOCAL = "localhost"


@dataclass(frozen=True)
class Host:
    """A machine, as ssh or SLURM knows it; `slots` is how many workers it has room for, None for its share."""

    name: str
    slots: int | None = None

    @property
    def address(self) -> str:
        """What the other workers know it by."""
        return self.name.rpartition("@")[2]


@dataclass(frozen=True)
class Size:
    """How many workers a job has: so many, or with `least` below `most` as many as there is room for."""

    least: int
    most: int

    @property
    def elastic(self) -> bool:
        """Whether it goes on with fewer."""
        return self.least < self.most


def size_of(text: str) -> Size:
    """The size in `4` or `2:8`.

    Raises:
        UsageError: it is neither.
    """
    match = re.fullmatch(r"(\d+)(?::(\d+))?", text)
    least, most = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= least <= most:
        raise UsageError(f"-n {text!r}: give a number of workers such as 4, or a range such as 2:8")
    return Size(least, most)


def hosts_of(text: str, option: str = "--hosts") -> list[Host]:
    """The machines in `a,b:4`, or in lines of that form.

    Raises:
        UsageError: one of them is no machine.
    """
    found = [_host(word, option) for word in re.split(r"[\s,]+", text.strip()) if word]
    names = [host.name for host in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"{option}: {twice} is named twice; {twice}:{names.count(twice)} means so many workers"
        )
    if not found:
        raise UsageError(f"{option} names no machine: give some, such as a,b or a:4,b:4")
    return found


def _host(word: str, option: str) -> Host:
    match = re.fullmatch(r"((?:[\w.-]+@)?[A-Za-z0-9][\w.-]*)(?::(\d+))?", word)
    if match is None or match[2] == "0":
        raise UsageError(f"{option}: {word!r} is no machine: give a name, or a name and a number such as a:4")
    return Host(match[1], int(match[2]) if match[2] else None)


def share(hosts: list[Host], size: Size) -> dict[str, int] | None:
    """How many workers each machine gets, in order; None if there is no room for the least number."""
    known = all(host.slots is not None for host in hosts)
    count = min(size.most, sum(host.slots or 0 for host in hosts)) if known else size.most
    if not hosts or count < size.least:
        return None
    if known:
        return _filled(hosts, count)
    open_hosts = [host for host in hosts if host.slots is None]
    fixed = _filled([host for host in hosts if host.slots is not None], count)
    left = count - sum(fixed.values())
    each, more = divmod(left, len(open_hosts))
    shares = fixed | {host.name: each + (i < more) for i, host in enumerate(open_hosts)}
    return {host.name: shares[host.name] for host in hosts if shares.get(host.name)}


def _filled(hosts: list[Host], count: int) -> dict[str, int]:
    shares: dict[str, int] = {}
    for host in hosts:
        taken = min(host.slots or 0, count)
        count -= taken
        if taken:
            shares[host.name] = taken
    return shares
