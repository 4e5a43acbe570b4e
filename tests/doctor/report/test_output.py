"""Files the user asked for."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from stoker.doctor.report import output
from stoker.errors import UsageError


def test_a_dash_is_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    output.write("-", "text")
    assert capsys.readouterr().out == "text"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    output.write(str(path), "through")
    reader.join()
    assert read == ["through"]
    assert path.is_fifo()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot write .*no/page\.html: No such file or directory"):
        output.write(str(tmp_path / "no" / "page.html"), "x")
    with pytest.raises(UsageError, match="cannot write"):
        output.write(str(tmp_path), "x")
