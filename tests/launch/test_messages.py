"""Messages between supervisor and agent, as lines."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.launch.messages import Command, Report, decode_command, decode_report, encode

# NaN equals nothing, not even itself.
COMMANDS = st.one_of([st.from_type(kind) for kind in get_args(Command)]).filter(
    lambda message: b"NaN" not in encode(message)
)
REPORTS = st.one_of([st.from_type(kind) for kind in get_args(Report)]).filter(
    lambda message: b"NaN" not in encode(message)
)


@given(COMMANDS)
def test_a_command_arrives_as_it_was_sent(command: Command) -> None:
    line = encode(command)
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    assert decode_command(line) == command


@given(REPORTS)
def test_a_report_arrives_as_it_was_sent(report: Report) -> None:
    line = encode(report)
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    assert decode_report(line) == report


@pytest.mark.parametrize("line", [b"17", b"[]", b"{}", b'{"say": "moon"}', b'{"say": "exit", "rank": 1}'])
def test_a_line_that_is_not_a_message_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"^not a message$"):
        decode_report(line)


def test_the_greeting_of_a_login_shell_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^Expecting value: "):
        decode_report(b"Welcome to node 1!")
