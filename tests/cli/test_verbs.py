"""`stoker` itself: its list of verbs, words it does not know, completion in a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.cli import GROUPS, main


def test_every_verb_is_listed_once_with_its_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    import stoker.cli

    files = sorted(
        file.stem.replace("_", "-")
        for file in Path(stoker.cli.__file__).parent.glob("[!_]*.py")
        if not file.stem.startswith("_")
    )
    assert sorted(verb for verbs in GROUPS.values() for verb in verbs) == files
    assert main([]) == 0
    alone = capsys.readouterr().out
    assert "  run           Run a program and show where every second went." in alone
    assert all(f"{title}:" in alone for title in GROUPS)
    with pytest.raises(SystemExit):
        main(["--help"])
    assert alone.strip() in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chekc"], "there is no verb 'chekc': did you mean 'check'?"),
        (["zzz"], "there is no verb 'zzz'; see stoker --help"),
        (["serve", "bundle", "--prot", "8"], "stoker serve does not know --prot 8: did you mean '--port'?"),
        (["check", "x.py", "--zzz"], "stoker check does not know --zzz; see stoker check --help"),
    ],
)
def test_an_unknown_word_gets_a_suggestion(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err == f"stoker: {said}\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [("stoker se", {"serve "}), ("stoker serve --por", {"--port "}), ("stoker runs ve", {"verify "})],
)
def test_a_shell_completes_verbs_and_options(line: str, expected: set[str], tmp_path: Path) -> None:
    answers = tmp_path / "answers"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answers),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([sys.executable, "-m", "stoker"], env=environment, check=True)
    assert set(answers.read_text().splitlines()) == expected


def test_missing_data_is_refused_before_tensorflow_is_loaded() -> None:
    code = (
        "import sys; from stoker.cli import main;"
        "code = main(['train', 'table', 'missing.csv', '--target', 'y']);"
        "sys.exit(code if 'tensorflow' not in sys.modules else 1)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "stoker: there is no file or folder missing.csv\n")
