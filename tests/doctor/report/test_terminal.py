"""Text of others is shown on a terminal, and never obeyed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

from stoker.cli import main
from stoker.doctor.report.terminal import Terminal
from stoker.tracking.store import address, writer
from stoker.tracking.store.events import FindingsMeasured, LedgerMeasured
from stoker.tracking.store.tracking import TrackedRun
from tests.samples import sample_record

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31mred\r\u202eback"
OBEYED = set("\x1b\x07\x9b\r\u202e")


def test_what_a_console_prints_has_only_its_own_escapes() -> None:
    written = io.StringIO()
    console = Terminal(file=written, force_terminal=True, color_system="standard", width=100)
    table = Table("title " + EVIL)
    table.add_row(Text(EVIL, style="red"))
    console.print(table, Text(EVIL), EVIL)
    text = written.getvalue()
    assert "\x1b[31m" in text
    assert "\x1b]0" not in text
    assert "\x1b[2J" not in text
    assert not set("\x07\x9b\r\u202e") & set(text)


def test_every_command_over_the_store_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: dict[address.Address, writer.StoreWriter] = {}
    monkeypatch.setattr(writer, "_writers", made)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_STORE", f"sqlite:///{tmp_path / 'stoker.db'}")
    store = address.parse(f"sqlite:///{tmp_path / 'stoker.db'}")
    ids = []
    for number in range(2):
        with TrackedRun(
            EVIL + "\n20261116-fake-row", {EVIL: EVIL * (number + 1)}, store=store, kind=EVIL
        ) as run:
            run.log(0, {EVIL: 1.0})
            (tmp_path / "file").write_text(str(number))
            run.artifact(tmp_path / "file", name=EVIL, kind=EVIL)
            findings = [{**one, "title": EVIL, "file": EVIL} for one in sample_record().to_json()["findings"]]
            run.put(FindingsMeasured(run.id, findings), LedgerMeasured(run.id, {EVIL: 1.0}))
        ids.append(run.id)
    for one in made.values():
        one.close()
    (tmp_path / "file").write_text("replaced")
    for words, code in (
        (["runs"], 0), (["runs", "--columns", EVIL], 0), (["runs", "show", ids[0]], 0), (["runs", "diff", *ids], 0),
        (["audit"], 0), (["audit", "--verify"], 1), (["runs", "show", EVIL], 2), (["runs", "--where", EVIL], 2),
        (["runs", "delete", ids[0]], 0),
    ):  # fmt: skip
        assert main(words) == code, words
        printed = capsys.readouterr()
        assert not OBEYED & set(printed.out + printed.err), words
        assert not any(line.startswith("20261116-fake") for line in printed.out.splitlines()), words
