"""`stoker` as typed: bad input is one clear line and exit code 2, records are listed and drawn again."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from stoker.cli import main
from stoker.tracking.store import record_files
from tests.samples import sample_record
from tests.support import ROOT, Outcome, run, run_plain, run_stoker, write_program


def stoker(directory: Path, *words: str) -> Outcome:
    return run([sys.executable, "-m", "stoker", *words], directory)


def one_line(outcome: Outcome) -> str:
    """The one line of a refusal."""
    assert outcome.code == 2
    assert outcome.stdout == ""
    lines = outcome.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("stoker: ")
    return lines[0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("train table --traget=y", "stoker train table does not know --traget: did you mean '--target'?"),
        ("train table --see 3 --traget=y", "stoker train table does not know --traget: did you mean '--target'?"),
        ("train tabel x.csv", "argument KIND: invalid choice: 'tabel': did you mean 'table'?"),
        ("runs shw", "argument ACTION: invalid choice: 'shw': did you mean 'show'?"),
        ("check --format jsn", "argument --format: invalid choice: 'jsn': did you mean 'json'?"),
        ("runs qqq", "'head', 'verify'); see stoker runs --help"),
    ],
)  # fmt: skip
def test_a_misspelled_word_gets_a_suggestion(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    assert capsys.readouterr().err.replace("head, verify", "'head', 'verify'").rstrip().endswith(said)


def test_no_such_file(tmp_path: Path) -> None:
    assert one_line(stoker(tmp_path, "run", "nothere.py")) == "stoker: no such file: nothere.py"


def test_a_directory(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert "src is a directory" in one_line(stoker(tmp_path, "run", "src"))


def test_a_program_with_a_syntax_error_ends_as_without_stoker(tmp_path: Path) -> None:
    write_program(tmp_path, "x = 1\ndef f(:\n")
    plain, measured = run_plain(tmp_path, "train.py"), stoker(tmp_path, "run", "train.py")
    assert measured.code == plain.code == 1
    assert "line 2\n    def f(:" in measured.stderr
    assert "SyntaxError: invalid syntax" in measured.stderr


def test_a_program_that_deletes_our_directory_keeps_its_exit_code(tmp_path: Path) -> None:
    write_program(tmp_path, "import shutil, sys\nshutil.rmtree('.stoker')\nsys.exit(int(sys.argv[1]))\n")
    for code in (0, 3):
        outcome = stoker(tmp_path, "run", "train.py", str(code))
        assert outcome.code == code
        assert "Traceback" not in outcome.stderr


def test_no_program(tmp_path: Path) -> None:
    assert "no program given" in one_line(stoker(tmp_path, "run"))


def test_no_such_module(tmp_path: Path) -> None:
    assert "no module named 'nothere'" in one_line(stoker(tmp_path, "run", "-m", "nothere.job"))


def test_an_unwritable_place(tmp_path: Path) -> None:
    write_program(tmp_path, "print('started')")
    (tmp_path / ".stoker").touch()
    assert "cannot write to .stoker/runs" in one_line(stoker(tmp_path, "run", "train.py"))


def test_an_unsupported_tensorflow_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A distribution found before the real one, as an old environment would have it."""
    info = tmp_path / "old" / "tensorflow-2.9.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.9.0\n")
    write_program(tmp_path, "print('started')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "old"))
    line = one_line(stoker(tmp_path, "run", "train.py"))
    assert "TensorFlow 2.9.0 is not supported: Stoker measures 2.17 to 2.21" in line


def test_an_unsupported_tensorflow_met_on_the_way(tmp_path: Path) -> None:
    """A `tensorflow` beside the program: it runs on, unmeasured, and the report says why."""
    write_program(tmp_path, "__version__ = '1.15.0'\n", "tensorflow.py")
    write_program(tmp_path, "import tensorflow\nprint(tensorflow.__version__)\n")
    outcome = run_stoker(tmp_path, "train.py")
    assert (outcome.code, outcome.stdout) == (0, "1.15.0\n")
    assert "TensorFlow 1.15.0 is not supported" in " ".join(outcome.stderr.split())


def test_an_unsupported_keras_met_on_the_way(tmp_path: Path) -> None:
    """A `keras` beside the program: it runs on, and the record says why its loops are not measured."""
    keras = "__version__ = '3.16.0'\n\nclass config:\n    backend = staticmethod(lambda: 'tensorflow')\n"
    write_program(tmp_path, keras, "keras.py")
    write_program(tmp_path, "import keras\nprint(keras.__version__)\n")
    outcome = run_stoker(tmp_path, "train.py")
    assert (outcome.code, outcome.stdout) == (0, "3.16.0\n")
    assert "Keras 3.16.0 is not supported: Stoker runs on 3.12.1 to 3.15" in " ".join(outcome.stderr.split())


def test_a_program_without_tensorflow(tmp_path: Path) -> None:
    write_program(tmp_path, "print('hello')\nraise SystemExit(4)\n")
    outcome = run_stoker(tmp_path, "train.py")
    assert (outcome.code, outcome.stdout) == (4, "hello\n")
    assert outcome.stderr.count("never imported TensorFlow") == 1
    assert "Traceback" not in outcome.stderr


def keep_runs(directory: Path) -> None:
    runs = directory / ".stoker" / "runs"
    runs.mkdir(parents=True)
    for name in ("20260101-000000-aaaa", "20260102-000000-bbbb"):
        record_files.write(sample_record(id=name), runs / f"{name}.json")


def test_runs_lists_newest_first_and_damaged_ones_too(tmp_path: Path) -> None:
    keep_runs(tmp_path)
    (tmp_path / ".stoker" / "runs" / "20260103-000000-cccc.json").write_text("{")
    outcome = stoker(tmp_path, "runs")
    assert outcome.code == 0
    assert outcome.stdout.index("20260102") < outcome.stdout.index("20260101")
    assert "24.4" in outcome.stdout
    assert "damaged" in outcome.stdout


def test_report_draws_the_last_run_to_stdout(tmp_path: Path) -> None:
    keep_runs(tmp_path)
    outcome = stoker(tmp_path, "report")
    assert outcome.code == 0
    assert "sync-in-loop" in outcome.stdout
    assert "20260102-000000-bbbb" in outcome.stdout


def test_report_writes_json(tmp_path: Path) -> None:
    keep_runs(tmp_path)
    shown = json.loads(stoker(tmp_path, "report", "20260101", "--json", "-").stdout)
    assert shown["id"] == "20260101-000000-aaaa"
    assert stoker(tmp_path, "report", "--json", "out.json").code == 0
    assert json.loads((tmp_path / "out.json").read_text())["schema"] == 1


def test_report_of_nothing_is_one_line(tmp_path: Path) -> None:
    assert "no runs in" in one_line(stoker(tmp_path, "report"))
    keep_runs(tmp_path)
    assert "no run with id 'zzz'" in one_line(stoker(tmp_path, "report", "zzz"))
    assert "cannot write" in one_line(stoker(tmp_path, "report", "--json", "no/such/dir/x.json"))


def test_an_unknown_verb(tmp_path: Path) -> None:
    assert "there is no verb 'rum': did you mean 'run'?" in one_line(stoker(tmp_path, "rum"))


def test_help_names_the_verbs(tmp_path: Path) -> None:
    shown = stoker(tmp_path, "--help").stdout
    assert "run" in shown
    assert "report" in shown
    assert "_attach" not in shown


def test_the_command_line_starts_without_tensorflow(tmp_path: Path) -> None:
    heavy = "[name for name in ('tensorflow', 'keras', 'numpy') if name in sys.modules]"
    code = f"import sys, stoker.cli.run; print({heavy})"
    assert run([sys.executable, "-c", code], tmp_path).stdout == "[]\n"


def test_json_goes_to_stdout_after_the_programs_own(tmp_path: Path) -> None:
    write_program(tmp_path, "print('hello')")
    outcome = stoker(tmp_path, "run", "--quiet", "--json", "-", "train.py", "--json", "mine")
    first, _, rest = outcome.stdout.partition("\n")
    assert first == "hello"
    assert json.loads(rest)["argv"] == ["--json", "mine"]
    assert outcome.stderr == ""


def on_a_terminal(directory: Path, *words: str, awaited: bytes) -> bytes:
    """What `stoker` writes to a stderr that is a terminal of 24 rows; a file `seen` tells the program that it did."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "stoker", *words],
        cwd=directory,
        stdout=subprocess.DEVNULL,
        stderr=follower,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(follower)
    shown = b""
    try:
        while chunk := os.read(leader, 65536):
            shown += chunk
            if awaited in shown:
                (directory / "seen").touch()
    except OSError:
        pass  # Linux answers with an error when the other side is closed.
    os.close(leader)
    assert process.wait() == 0
    return shown


def test_a_live_line_has_the_terminals_last_row_and_gives_it_back(tmp_path: Path) -> None:
    write_program(tmp_path, "import os, time\nwhile not os.path.exists('seen'):\n    time.sleep(0.01)")
    shown = on_a_terminal(tmp_path, "run", "train.py", awaited=b"0 steps")
    taken, drawn, given_back = shown.index(b"\x1b[1;23r"), shown.index(b"\x1b[24;1H"), shown.index(b"\x1b[r")
    assert taken < drawn < given_back < shown.index(b"train.py")
    assert b"0 steps" in shown[drawn:given_back]


def test_a_cell_of_a_notebook_has_no_last_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JPY_PARENT_PID", str(os.getpid()))
    write_program(tmp_path, "import time\ntime.sleep(1.1)")
    shown = on_a_terminal(tmp_path, "run", "train.py", awaited=b"train.py")
    assert b"train.py" in shown
    assert b"\x1b[24;1H" not in shown


def test_no_live_line_and_no_colour_without_a_terminal(tmp_path: Path) -> None:
    write_program(tmp_path, "import time\ntime.sleep(1.1)")
    assert "\x1b" not in run_stoker(tmp_path, "train.py").stderr


def test_help_lists_every_verb_and_imports_none() -> None:
    code = (
        "import sys; from stoker.cli import main\ntry: main(['--help'])\nfinally: print(sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    help_text, _, modules = done.stdout.rpartition("[")
    for path in (ROOT / "src" / "stoker" / "cli").glob("[a-z]*.py"):
        assert f"  {path.stem.replace('_', '-')}  " in help_text
    for name in ("tensorflow", "rich", "stoker.doctor.check.source", "stoker.records", "stoker.cli.run"):
        assert f"'{name}'" not in modules


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "stoker", "explain", "--list"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        program.stdout.close()
        assert program.stderr.read() == ""
    assert program.returncode == 141
