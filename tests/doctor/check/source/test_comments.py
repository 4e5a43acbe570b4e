"""Comments that leave findings out: what they cover, and how those that cover nothing are reported."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from stoker.cli import main
from stoker.doctor.check.checker import check_paths

LOOP = """\
import tensorflow as tf
for x in dataset:
    loss = tf.reduce_sum(model(x))
    print(loss.numpy()){comment}
"""


def findings(tmp_path: Path, code: str) -> list[tuple[int, str, str]]:
    path = tmp_path / "train.py"
    path.write_text(code, encoding="utf-8")
    return [(p.line, p.kind, p.message) for p in check_paths([str(path)]).problems]


@pytest.mark.parametrize(
    "comment",
    [
        "# stoker: ignore[sync-in-loop]",
        "# stoker: ignore[STK101]",
        "# stoker: ignore[STK1]",
        "# stoker: ignore",
        "#stoker:ignore",
        "# stoker: ignore -- early stopping needs it",
        "# stoker: ignore[sync-in-loop] early stopping needs it",
        "# noqa: T201  # stoker: ignore",
        "# stoker: allow[sync-in-loop]",
        "# stoker: allow",
    ],
)
def test_a_comment_on_the_line_leaves_the_finding_out(tmp_path: Path, comment: str) -> None:
    assert findings(tmp_path, LOOP.format(comment="  " + comment)) == []
    assert [kind for _, kind, _ in findings(tmp_path, LOOP.format(comment=""))] == ["sync-in-loop"]


@pytest.mark.parametrize("name", ["", "[sync-in-loop]", "[STK1]"])
def test_a_file_comment_counts_everywhere(tmp_path: Path, name: str) -> None:
    assert findings(tmp_path, LOOP.format(comment="") + f"# stoker: ignore-file{name}\n") == []


def test_a_comment_on_its_own_line_speaks_for_the_next_line_of_code(tmp_path: Path) -> None:
    code = """\
    import tensorflow as tf
    for x in dataset:
        loss = tf.reduce_sum(model(x))
        # stoker: ignore[sync-in-loop]
        # The loss decides when to stop.

        print(loss.numpy())
        print(float(loss))
    """
    assert [found[:2] for found in findings(tmp_path, textwrap.dedent(code))] == [(8, "sync-in-loop")]


def test_a_comment_for_another_kind_leaves_the_finding_in(tmp_path: Path) -> None:
    found = findings(tmp_path, LOOP.format(comment="  # stoker: ignore[missing-prefetch]"))
    assert [(line, kind) for line, kind, _ in found] == [(4, "sync-in-loop"), (4, "unused-allow")]


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# stoker: ignore[missing-prefetch]", "ignores 'missing-prefetch', but nothing here needs it"),
        ("# stoker: ignore", "ignores every kind, but nothing here needs it"),
        ("# stoker: ignore-file", "ignores every kind, but nothing here needs it"),
        ("# stoker: ignore[sync-in-lop]", "which is not a kind or code: did you mean 'sync-in-loop'?"),
        ("# stoker: ignore[STK999]", "'STK999', which is not a kind or code"),
        ("# stoker: ignroe[sync-in-loop]", "cannot read this comment ('ignroe')"),
        ("# stoker: ignore sync-in-loop", "cannot read this comment ('ignore')"),
        ("# stoker: ignore(sync-in-loop)", "cannot read this comment ('ignore')"),
        ("# stoker: disable", "cannot read this comment ('disable')"),
    ],
)
def test_a_comment_that_leaves_nothing_out_is_reported(tmp_path: Path, comment: str, said: str) -> None:
    ((line, kind, message),) = findings(tmp_path, f"import tensorflow as tf\n\nx = 1  {comment}\n")
    assert (line, kind) == (3, "unused-allow")
    assert said in message


@pytest.mark.parametrize(
    "line",
    ["# stoker: keeps the device busy", 'text = "# stoker: ignore"', "# see stoker: it ignores nothing"],
)
def test_prose_and_strings_are_no_comments_of_this_kind(tmp_path: Path, line: str) -> None:
    assert findings(tmp_path, f"import tensorflow as tf\n{line}\n") == []


def test_in_a_notebook_a_comment_counts_in_its_own_cell(tmp_path: Path) -> None:
    loop = LOOP.removeprefix("import tensorflow as tf\n")
    sources = [
        "import tensorflow as tf\n",
        loop.format(comment="  # stoker: ignore"),
        loop.format(comment=""),
    ]
    cells = [{"cell_type": "code", "source": source} for source in sources]
    path = tmp_path / "train.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert [(p.cell, p.line, p.kind) for p in check_paths([str(path)]).problems] == [(3, 3, "sync-in-loop")]


def test_the_report_of_unused_comments_can_be_switched_off(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "train.py"
    path.write_text("import tensorflow as tf\nx = 1  # stoker: ignore\n", encoding="utf-8")
    assert main(["check", "--no-cache", "--fail-on", "warning", str(path)]) == 1
    for name in ("unused-allow", "STK001"):
        assert main(["check", "--no-cache", "--fail-on", "warning", "--ignore", name, str(path)]) == 0
