"""Machines, and how many workers go where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.errors import UsageError
from stoker.launch.hosts import Host, JobSize, parse_hosts, parse_size, share_out


@pytest.mark.parametrize(
    ("hosts", "size", "shares"),
    [
        ("a,b", "4", {"a": 2, "b": 2}),
        ("a,b", "3", {"a": 2, "b": 1}),
        ("a,b,c", "2", {"a": 1, "b": 1}),
        ("a:1,b:4", "3", {"a": 1, "b": 2}),
        ("a:1,b", "4", {"a": 1, "b": 3}),
        ("a:1,b:1", "2:8", {"a": 1, "b": 1}),
        ("a:1,b:1", "3", None),
        ("a:1", "2:8", None),
    ],
)
def test_workers_are_shared_out(hosts: str, size: str, shares: dict[str, int] | None) -> None:
    assert share_out(parse_hosts(hosts), parse_size(size)) == shares


@given(
    st.lists(st.none() | st.integers(1, 9), min_size=1, max_size=6),
    st.integers(1, 20),
    st.integers(0, 20),
)
def test_no_machine_gets_more_workers_than_it_has_room_for(
    slots: list[int | None], least: int, more: int
) -> None:
    hosts = [Host(f"h{i}", count) for i, count in enumerate(slots)]
    shares = share_out(hosts, JobSize(least, least + more))
    room = None if None in slots else sum(slot or 0 for slot in slots)
    if room is not None and room < least:
        assert shares is None
        return
    assert shares is not None
    assert sum(shares.values()) == min(least + more, least + more if room is None else room)
    assert all(host.slots is None or shares.get(host.name, 0) <= host.slots for host in hosts)
    assert all(shares.values())


def test_the_user_is_not_part_of_the_address() -> None:
    (host,) = parse_hosts("me@node-1.example:4")
    assert (host.name, host.address, host.slots) == ("me@node-1.example", "node-1.example", 4)


@pytest.mark.parametrize("text", ["a:0", "a b:x", "-oProxyCommand=x", "a;rm", "$(x)"])
def test_an_invalid_machine_never_reaches_ssh(text: str) -> None:
    with pytest.raises(UsageError, match="invalid machine"):
        parse_hosts(text)
