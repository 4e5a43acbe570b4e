"""`stoker ui` as typed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from stoker.cli import main
from tests.support import HANGS_S


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_ends_with_a_page_open(tmp_path: Path, sent: signal.Signals) -> None:
    command = [sys.executable, "-m", "stoker", "ui"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env={**os.environ, "STOKER_STORE": f"sqlite:///{tmp_path / 'runs.db'}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever started the tests in the background had SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"sqlite:///{tmp_path / 'runs.db'}\n"
    url = process.stdout.readline().strip()
    assert url.startswith("http://127.0.0.1:")
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    assert b"<title>Stoker</title>" in browser.open(url, timeout=HANGS_S).read()
    events = browser.open(url.split("?")[0] + "api/events", timeout=HANGS_S)
    assert events.readline().startswith(b"data: ")
    process.send_signal(sent)
    _, complaint = process.communicate(timeout=HANGS_S)
    assert process.returncode in (0, -sent)
    assert "Traceback" not in complaint


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "set a token (--token-file)"),
        (["--token", "short"], "at least 16 characters"),
        (["--port", "99999"], "--port 99999 must be between 0 and 65535"),
        (["--store", "off"], "the store is switched off"),
        (["--store", "sqlite:///nodir/x.db"], "nodir/x.db"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STOKER_STORE")
    assert main(["ui", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert list(tmp_path.iterdir()) == []
