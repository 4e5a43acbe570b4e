"""`stoker lsp` as an editor sees it: a real process, spoken to over its pipes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.cli import main
from tests.doctor.lsp.client import Editor

pytest.importorskip("pygls", reason="the language server needs stoker[lsp]")

SYNC = """\
import tensorflow as tf

for x in dataset:
    loss = tf.reduce_sum(model(x))
    print(loss.numpy())
"""
FIXABLE = """\
import tensorflow as tf

ds = tf.data.Dataset.range(9).batch(3)
model.fit(ds)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    (tmp_path / "train.py").write_text(SYNC, encoding="utf-8")
    return tmp_path


@pytest.fixture
def editor(project: Path) -> Iterator[Editor]:
    server = Editor(project)
    yield server
    server.kill()


def save_run(directory: Path, line: int, source: str, speedup: float, basis: str) -> None:
    """Write the record of a run that priced one line of train.py."""
    price = {"speedup": speedup, "low": speedup - 0.1, "high": speedup + 0.1, "basis": basis}
    finding = {
        "kind": "sync-in-loop",
        "code": "STK101",
        "file": "train.py",
        "line": line,
        "source": source,
        "title": "t",
        "remedy": "r",
        "what_if": price,
    }
    record = {
        "schema": 1,
        "id": "20261118-090000-aa",
        "program": "train.py",
        "argv": [],
        "exit_code": 0,
        "versions": {},
        "device": {},
        "wall_s": 1.0,
        "steps": 1,
        "steps_per_s": 1.0,
        "examples_per_s": None,
        "accounts": {},
        "findings": [finding],
    }
    runs = directory / ".stoker" / "runs"
    runs.mkdir(parents=True)
    (runs / "20261118-090000-aa.json").write_text(json.dumps(record), encoding="utf-8")


def actions(editor: Editor, path: Path, line: int, **context: Any) -> list[dict[str, Any]]:
    place = {"line": line, "character": 0}
    found: list[dict[str, Any]] = editor.request(
        "textDocument/codeAction",
        textDocument={"uri": path.as_uri()},
        range={"start": place, "end": place},
        context={"diagnostics": [], **context},
    )
    return found


def apply(text: str, action: dict[str, Any]) -> str:
    """The text after an action's edits, all on lines of ASCII characters."""
    (change,) = action["edit"]["documentChanges"]
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    spans = []
    for edit in change["edits"]:
        ends = [
            starts[edit["range"][side]["line"]] + edit["range"][side]["character"]
            for side in ("start", "end")
        ]
        spans.append((*ends, edit["newText"]))
    for begin, end, new in sorted(spans, reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def test_findings_appear_when_a_file_is_opened_and_go_when_it_is_mended(
    editor: Editor, project: Path
) -> None:
    path = project / "train.py"
    (found,) = editor.open(path)
    assert (found["code"], found["source"], found["severity"]) == ("STK101", "stoker sync-in-loop", 1)
    assert found["range"] == {"start": {"line": 4, "character": 10}, "end": {"line": 4, "character": 22}}
    assert "is read with .numpy() at every step" in found["message"]
    editor.change(path, 2, SYNC.replace("loss.numpy()", "'step'"))
    assert editor.wait_for_findings(path, 2) == []
    editor.notify("textDocument/didClose", textDocument={"uri": path.as_uri()})
    assert editor.wait_for_findings(path, None) == []
    assert editor.close() == 0


def test_only_the_text_after_a_burst_of_keys_is_checked(editor: Editor, project: Path) -> None:
    path = project / "train.py"
    editor.open(path)
    for version in range(2, 30):
        editor.change(path, version, SYNC + "#" * version)
    assert len(editor.wait_for_findings(path, 29)) == 1
    # Opened, and after the last key; a slow machine may see a pause or two between the keys.
    assert len(editor.published) < 15


def test_findings_stay_while_the_text_does_not_parse(editor: Editor, project: Path) -> None:
    path = project / "train.py"
    editor.open(path)
    editor.change(path, 2, SYNC + "def (")
    editor.notify("textDocument/didSave", textDocument={"uri": path.as_uri()})
    editor.change(path, 3, SYNC + "done = True\n")
    assert len(editor.wait_for_findings(path, 3)) == 1
    assert [params.get("version") for params in editor.published] == [1, 3]


@pytest.mark.parametrize(
    ("speedup", "basis", "words"),
    [
        (3.14, "measured", "3.1x faster without it, measured in run"),
        (1.04, "modelled", "hardly faster without it, modelled from run"),
    ],
)
def test_a_line_shows_its_price_also_after_it_moved(
    editor: Editor, project: Path, speedup: float, basis: str, words: str
) -> None:
    save_run(project, 5, "print(loss.numpy())", speedup, basis)
    path = project / "train.py"
    (found,) = editor.open(path)
    said = f"{words} 20261118-090000-aa"
    assert found["message"].endswith(f"[{said}]")
    editor.change(path, 2, "import os\n\n" + SYNC)
    (moved,) = editor.wait_for_findings(path, 2)
    assert moved["range"]["start"]["line"] == 6
    assert moved["message"] == found["message"]
    place = {"line": 6, "character": 12}
    hover = editor.request("textDocument/hover", textDocument={"uri": path.as_uri()}, position=place)
    assert f"**{said}**" in hover["contents"]["value"]


def test_a_run_made_meanwhile_is_seen_at_the_next_save(editor: Editor, project: Path) -> None:
    path = project / "train.py"
    (found,) = editor.open(path)
    assert "faster" not in found["message"]
    save_run(project, 5, "print(loss.numpy())", 3.14, "measured")
    editor.notify("textDocument/didSave", textDocument={"uri": path.as_uri()})
    (found,) = editor.wait_for_findings(path, 1)
    assert found["message"].endswith("[3.1x faster without it, measured in run 20261118-090000-aa]")


def test_hover_explains_a_finding_and_is_silent_elsewhere(editor: Editor, project: Path) -> None:
    path = project / "train.py"
    editor.open(path)

    def hover(line: int) -> Any:
        place = {"line": line, "character": 2}
        return editor.request("textDocument/hover", textDocument={"uri": path.as_uri()}, position=place)

    text = hover(4)["contents"]["value"]
    assert "**sync-in-loop** (STK101): A tensor is read back to the host in the loop." in text
    assert "Keep values on the device" in text
    assert hover(0) is None


def test_actions_are_the_edits_of_stoker_fix(
    editor: Editor, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / "fit.py"
    path.write_text(FIXABLE, encoding="utf-8")
    editor.open(path)
    fix, ignore = actions(editor, path, 2, only=["quickfix"])
    assert fix["isPreferred"] is True
    assert fix["diagnostics"][0]["code"] == "STK301"
    (all_safe,) = actions(editor, path, 0, only=["source.fixAll"])
    mended = apply(FIXABLE, fix)
    assert apply(FIXABLE, all_safe) == mended
    assert main(["fix", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == mended
    assert ignore["title"] == "Ignore missing-prefetch on this line"
    editor.change(path, 2, apply(FIXABLE, ignore))
    assert editor.wait_for_findings(path, 2) == []


def test_a_finding_without_a_fix_can_be_ignored_where_it_is(editor: Editor, project: Path) -> None:
    path = project / "train.py"
    editor.open(path)
    (ignore,) = actions(editor, path, 4)
    new = apply(SYNC, ignore)
    assert new.splitlines()[4] == "    # stoker: ignore[sync-in-loop]"
    editor.change(path, 2, new)
    assert editor.wait_for_findings(path, 2) == []
    assert actions(editor, path, 5) == []


def test_columns_count_in_the_units_of_the_editor(project: Path) -> None:
    text = SYNC.replace("print(loss", "print('🔥é', loss")
    for encoding, column in (("utf-16", 17), ("utf-32", 16), ("utf-8", 20)):
        server = Editor(project, encoding)
        try:
            (found,) = server.open(project / "train.py", text)
            assert found["range"]["start"]["character"] == column
        finally:
            server.kill()


def test_unsaved_text_of_another_open_file_counts(editor: Editor, project: Path) -> None:
    helper, train = project / "helpers.py", project / "train.py"
    helper.write_text("def log(loss):\n    pass\n", encoding="utf-8")
    text = "import tensorflow as tf\nfrom helpers import log\nfor x in dataset:\n    log(tf.reduce_sum(model(x)))\n"
    editor.open(train, text)
    assert editor.open(helper) == []
    editor.change(helper, 2, "def log(loss):\n    print(loss)\n")
    (found,) = editor.wait_for_findings(helper, 2)
    assert (found["code"], found["range"]["start"]["line"]) == ("STK101", 1)


def test_the_configuration_of_the_project_counts_and_its_faults_are_told_once(
    editor: Editor, project: Path
) -> None:
    settings = project / "pyproject.toml"
    settings.write_text('[tool.stoker]\nignore = ["STK101"]\n', encoding="utf-8")
    path = project / "train.py"
    assert editor.open(path) == []
    settings.write_text("[tool.stoker]\ncolour = 1\n", encoding="utf-8")
    editor.change(path, 2, SYNC + "\n")
    assert len(editor.wait_for_findings(path, 2)) == 1
    editor.change(path, 3, SYNC)
    assert len(editor.wait_for_findings(path, 3)) == 1
    assert editor.close() == 0
    assert len(editor.shown) == 1
    assert "has no 'colour'" in editor.shown[0]
