"""`stoker fix` as people run it."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.cli import main

CODE = """import tensorflow as tf

def f(row):
    return tf.sqrt(row[0])

ds = tf.data.Dataset.from_tensor_slices(x).map(f).batch(32)
model.fit(ds)
"""


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    path = tmp_path / "train.py"
    path.write_text(CODE, encoding="utf-8")
    return path


def test_safe_fixes_by_default(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (train.parent / "below").mkdir()
    (train.parent / "below" / "other.py").touch()
    assert main(["fix"]) == 0
    assert train.read_text(encoding="utf-8") == CODE.replace(
        ".batch(32)", ".batch(32).prefetch(tf.data.AUTOTUNE)"
    )
    assert "Fixed 1 in 1 of 2 files." in capsys.readouterr().out
    assert main(["fix"]) == 0
    assert capsys.readouterr().out == (
        "Nothing fixed in 2 files. 1 finding has no safe fix; it has one that may change results "
        "(--unsafe; with --diff it only shows the changes).\n"
    )
    assert main(["fix", "--verify", "train.py"]) == 0, "nothing is run when there is nothing to fix"
    assert "1 finding has no safe fix" in capsys.readouterr().out


def test_what_has_no_fix_is_counted(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train.write_text("import tensorflow as tf\n\nprint(1)\n", encoding="utf-8")
    assert main(["fix"]) == 0
    assert capsys.readouterr().out == "Nothing to fix in 1 file.\n"
    assert main(["fix", "."]) == 0
    assert capsys.readouterr().out == "Nothing to fix.\n"
    train.write_text(CODE, encoding="utf-8")
    assert main(["fix", "train.py"]) == 0
    assert "Fixed 1 in 1 file." in capsys.readouterr().out


def test_diff_writes_nothing(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fix", "--unsafe", "--diff", "train.py"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("--- a/train.py\n+++ b/train.py\n")
    assert (
        "+ds = tf.data.Dataset.from_tensor_slices(x).map(f, num_parallel_calls=tf.data.AUTOTUNE).batch(32)"
        in out
    )
    assert train.read_text(encoding="utf-8") == CODE


def test_selection_and_allow_comments_count(train: Path) -> None:
    assert main(["fix", "--ignore", "STK3"]) == 0
    assert train.read_text(encoding="utf-8") == CODE
    allowed = CODE.replace(".batch(32)", ".batch(32)  # stoker: allow[missing-prefetch]")
    train.write_text(allowed, encoding="utf-8")
    assert main(["fix"]) == 0
    assert train.read_text(encoding="utf-8") == allowed


def test_unreadable_and_wrong_usage(train: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (train.parent / "broken.py").write_text("def (:\n", encoding="utf-8")
    assert main(["fix"]) == 2
    assert "prefetch" in train.read_text(encoding="utf-8")
    assert main(["fix", "-"]) == 2
    assert main(["fix", "--verify", "--"]) == 2
    assert "Traceback" not in capsys.readouterr().err
