"""What the library says goes through one logger, which a program can silence or redirect with standard logging."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from stoker.logs import LOGGER, use_handler
from tests.support import HANGS_S, environment

Runner: TypeAlias = Callable[[str], list[str]]

# A store that cannot be reached: the writer's thread warns about it.
TRACK = """
import stoker
with stoker.track("x", store="postgresql://nobody@127.0.0.1:1/none") as run:
    run.log(0, loss=1.0)
run.flush()
"""


@pytest.fixture
def stderr_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Runs a program, and returns what it wrote to stderr."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(program: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HANGS_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr.splitlines()

    return run


def test_by_default_a_warning_is_one_line_on_stderr(stderr_of: Runner) -> None:
    lines = stderr_of(TRACK)
    assert [line.partition(":")[0] for line in lines] == ["stoker"] * len(lines)
    assert lines[0].startswith("stoker: the store postgresql://nobody@127.0.0.1:1/none cannot be used")
    assert "\x1b" not in lines[0]


@pytest.mark.parametrize(
    "setting",
    [
        "logging.getLogger('stoker').setLevel(logging.CRITICAL)",
        "logging.getLogger('stoker').addHandler(logging.NullHandler())",
        "import stoker.logs; logging.getLogger('stoker').handlers = [logging.NullHandler()]",
    ],
    ids=["level", "handler", "removed"],
)
def test_standard_logging_silences_it(stderr_of: Runner, setting: str) -> None:
    assert stderr_of(f"import logging; {setting}\n{TRACK}") == []


def test_a_handler_added_later_gets_the_records_as_well(stderr_of: Runner) -> None:
    later = (
        "import logging, sys, stoker.logs; logging.getLogger('stoker').addHandler(logging.StreamHandler())"
    )
    lines = stderr_of(f"{later}\n{TRACK}")
    own = [line.removeprefix("stoker: ") for line in lines if line.startswith("stoker: ")]
    assert own
    assert own == [line for line in lines if not line.startswith("stoker: ")]


def test_a_programs_own_logging_shows_nothing_twice(stderr_of: Runner) -> None:
    lines = stderr_of(f"import logging; logging.basicConfig()\n{TRACK}")
    assert len(lines) == len(set(lines))
    assert all(line.startswith("stoker: ") for line in lines)


# Everything else that logs: training, a job of many processes, a server. Twice, the second time silenced.
TRAIN_LAUNCH_SERVE = """
import logging, os, pathlib, signal, sys, threading, urllib.error, urllib.request
import keras, numpy as np, stoker
from stoker.cli import main
from stoker.launch.ports import find_free_ports

def stop_when_ready(url):
    while True:
        try:
            urllib.request.urlopen(url + "/readyz")
            return os.kill(os.getpid(), signal.SIGTERM)
        except (urllib.error.URLError, ConnectionError):
            pass

def work(bundle):
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    stoker.fit(model, np.zeros([8, 2]), np.zeros([8]), verbose=2)
    stoker.export(model, bundle)
    assert main(["launch", "job.py"]) == 0
    port = find_free_ports(1)[0]
    threading.Thread(target=stop_when_ready, args=[f"http://127.0.0.1:{port}"]).start()
    assert main(["serve", bundle, "--port", str(port), "--store", "off"]) == 0

pathlib.Path("job.py").write_text("")
work("first")
print("SILENT")
print("SILENT", file=sys.stderr, flush=True)
logging.getLogger("stoker").setLevel(logging.CRITICAL)
work("second")
"""


@pytest.mark.slow
@pytest.mark.tensorflow
def test_one_level_silences_training_launch_and_serve(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", TRAIN_LAUNCH_SERVE],
        cwd=tmp_path,
        env={**environment(), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (out, silent_out), (err, silent_err) = (text.split("SILENT\n") for text in (done.stdout, done.stderr))
    assert "stoker: data kept on the device" in out
    assert "stoker: " not in silent_out
    for line in (
        "stoker: job ",
        "stoker: serving model (with a page for your browser) on http://",
        "stoker: ready",
    ):
        assert line in err
        assert line not in silent_err


PROGRESS = """
from stoker.logs import PROGRESS, REPLACED
PROGRESS.info("epoch %d", 1, extra=REPLACED)
PROGRESS.info("epoch %d", 2, extra=REPLACED)
PROGRESS.info("done: \\x1b[2J")
PROGRESS.info("bundle")
"""


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("pass", "epoch 1\r\x1b[Kepoch 2\r\x1b[Kdone: \ufffd[2J\nbundle\n"),
        ("import logging; logging.getLogger('stoker').setLevel(logging.WARNING)", ""),
        ("import logging; logging.getLogger('stoker.progress').setLevel(logging.WARNING)", ""),
    ],
    ids=["shown", "level", "level of progress"],
)
def test_progress_goes_to_stdout_and_its_open_lines_replace_each_other(setting: str, expected: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", f"{setting}\n{PROGRESS}"], capture_output=True, check=True
    )
    assert (done.stdout.decode(), done.stderr) == (expected, b"")


def test_a_console_without_the_letters_shows_a_replacement() -> None:
    program = "from stoker.logs import PROGRESS; PROGRESS.info('caf\u00e9')"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment(), "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"caf?\n", b"")


def test_another_handler_takes_over_for_a_while(capsys: pytest.CaptureFixture[str]) -> None:
    kept: list[logging.LogRecord] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            kept.append(record)

    with use_handler(Keeper()):
        LOGGER.info("to the keeper")
    LOGGER.info("to stderr")
    assert [record.getMessage() for record in kept] == ["to the keeper"]
    assert capsys.readouterr().err == "stoker: to stderr\n"


def test_a_closed_stderr_is_no_error(stderr_of: Runner) -> None:
    assert stderr_of(f"import sys; sys.stderr.close()\n{TRACK}") == []
