"""A log that cannot be written holds nobody up, and says later how much it lost."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

import pytest

from stoker.serve.server import log
from stoker.serve.server.log import ServerLog
from tests.support import wait_until


class Pipe:
    """Where a log is written, and what has come out."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def fill(self) -> None:
        os.set_blocking(self.writing, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(self.writing, b"x" * 4096)

    def empty(self) -> bytes:
        os.set_blocking(self.reading, False)
        found = b""
        with contextlib.suppress(BlockingIOError):
            while part := os.read(self.reading, 65536):
                found += part
        return found

    def lines(self) -> list[str]:
        return self.empty().decode().splitlines()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.writing)
    os.close(made.reading)


def test_lines_come_out_in_order(pipe: Pipe) -> None:
    made = ServerLog("stoker: ", pipe.writing)
    for number in range(100):
        made(f"line {number}")
    made.close()
    assert pipe.lines() == [f"stoker: line {number}" for number in range(100)]


def test_lines_that_cannot_be_written_are_counted_and_told_when_they_can_again(pipe: Pipe) -> None:
    made = ServerLog("", pipe.writing)
    pipe.fill()  # a write fails now, as on a full disk
    made("lost")
    made("lost, too")
    wait_until(lambda: made.lost == 2)
    pipe.empty()
    made("seen")
    made.close()
    assert pipe.lines() == ["2 log lines could not be written", "seen"]


def test_a_reader_that_is_gone_does_not_matter() -> None:
    pipe = Pipe()
    os.close(pipe.reading)
    made = ServerLog("", pipe.writing)
    made("nobody reads this")
    wait_until(lambda: made.lost == 1)
    made.close()
    os.close(pipe.writing)


def test_a_reader_that_does_not_read_holds_up_nobody(pipe: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "_MOST_WAITING", 100)
    monkeypatch.setattr(log, "_FLUSH_S", 0.01)
    pipe.fill()
    os.set_blocking(pipe.writing, True)
    made = ServerLog("", pipe.writing)
    for number in range(1000):
        made(f"line {number}")  # returns, though the thread is stuck in a write
    made.close()
    found = ""

    def are_told() -> bool:
        nonlocal found
        found += pipe.empty().decode()
        # On a busy machine they are told in several lines.
        lost = re.findall(r"([\d,]+) log lines? could not be written\n", found)
        return sum(int(count.replace(",", "")) for count in lost) >= 1000 - 102

    wait_until(are_told)
