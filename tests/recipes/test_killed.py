"""Killed or interrupted at any moment, recipes end with the bits of one that was left alone.

`make test` interrupts one here, and kills the table recipe in test_ejecting; `make soak-cases` kills all recipes at
every moment below, and after random saves.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from stoker.cli import main
from tests.recipes.base_weights import base_weights
from tests.recipes.data_files import reviews, sales, shapes
from tests.recipes.weights import weights_in
from tests.support import ALL_CASES, HANGS_S, environment, last_record, stop_when, wait_until
from tests.support import run as run_program

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]


class Watched:
    """A run while a process works on it.

    Args:
        run: its directory.
        log: what the process prints.
        pid: of the process.
    """

    def __init__(self, run: Path, log: Path, pid: int) -> None:
        self.run, self.log, self._pid = run, log, pid
        self._before = {path.name: _saves(path) for path in (run / "checkpoints").glob("*")}

    def has_loaded(self, library: str) -> bool:
        """Whether it has mapped a file of this name."""
        return library in Path(f"/proc/{self._pid}/maps").read_text()

    def saves(self, network: str) -> int:
        """How often this process has saved a network."""
        return _saves(self.run / "checkpoints" / network) - self._before.get(network, 0)

    def printed(self, text: str) -> bool:
        return text in "\n" + self.log.read_text(errors="replace")


def _saves(directory: Path) -> int:
    """Checkpoints are numbered from 1."""
    return max((int(path.name.split("-")[1]) for path in directory.glob("*.stoker")), default=0)


# A name for the moment, and what holds then.
Moment = tuple[str, Callable[[Watched], bool]]


def _begun(network: str) -> Moment:
    """Its training has begun: the first step is traced and made."""
    return f"{network} begins", lambda now: (now.run / "checkpoints" / network / "lock").exists()


def _saving(network: str) -> Moment:
    return f"{network} is saved", lambda now: any((now.run / "checkpoints" / network).glob("*.partial"))


def _saved(network: str, count: int) -> Moment:
    return f"{network} was saved {count} times more", lambda now: now.saves(network) >= count


def _trained(network: str) -> Moment:
    """Its last validation is over; baselines, comparison and export are not."""
    return (
        f"{network} is trained",
        lambda now: now.printed(f"\n  {network}: ") and not any(now.run.glob("*bundle*")),
    )


EXPORTING: Moment = "the bundle is written", lambda now: any(now.run.glob(".bundle.*"))


def _stopped_at(moment: Moment, command: list[str], run: Path, signals: Sequence[signal.Signals]) -> int:
    """Run a command until the moment has come, and send it signals, and nobody else; its exit code."""
    what, holds = moment
    log = Path("log")
    with log.open("wb") as printed:
        process = subprocess.Popen(
            [sys.executable, *command],
            env={**environment(), "PYTHONUNBUFFERED": "1"},
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # Whoever started the tests in the background had SIGINT ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
    try:
        now = Watched(run, log, process.pid)
        assert stop_when(process.pid, lambda: holds(now)), (
            f"it ended before {what}: {log.read_text()[-3000:]}"
        )
        for one in signals:
            process.send_signal(one)
        code = process.wait(HANGS_S)
    finally:
        process.kill()
        process.wait()
    # Nobody it had started is left, to write where the next one writes.
    wait_until(lambda: not _alive(process.pid))
    return code


def _killed_at(moment: Moment, command: list[str], run: Path) -> None:
    assert _stopped_at(moment, command, run, [signal.SIGKILL]) == -signal.SIGKILL


def _alive(group: int) -> bool:
    """Whether any process of a group still runs, where the system tells."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group, *_ = file.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state != "Z":
            return True
    return False


def _finished(command: list[str]) -> None:
    done = run_program([sys.executable, *command], Path.cwd())
    assert done.code == 0, done.stderr


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))


class Recipe:
    """A recipe that was run once and left alone, and its program, which saves every few steps.

    Attributes:
        asked: the words of the command.
        run: of the program.
    """

    def __init__(self, *asked: str) -> None:
        self.asked = ["train", *asked]
        assert main([*self.asked, "--name", "whole"]) == 0
        assert main([*self.asked, "--eject", "mine.py"]) == 0
        program = Path("mine.py")
        settings = "        Settings(\n"
        program.write_text(program.read_text().replace(settings, f"{settings}            save_every=3,\n"))
        self.run = Path("runs", "mine")

    def killed(self, *moments: Moment) -> None:
        """Kill the program at one moment after another, and let it end: with nothing in it that costs."""
        for moment in moments:
            _killed_at(moment, ["mine.py"], self.run)
        self._ends_alike(["-m", "stoker", "run", "mine.py"], self.run)
        record = last_record(Path())
        assert record is not None
        # What is left to do may be too little to tell a loop from what is done once; it is listed, at no price.
        costly = [
            finding
            for finding in record["findings"]
            if finding["what_if"] is None or finding["what_if"]["speedup"] >= 1.02
        ]
        assert costly == []

    def command_killed(self, *moments: Moment) -> None:
        """The same with the command itself."""
        command = ["-m", "stoker", *self.asked, "--name", "cut"]
        for moment in moments:
            _killed_at(moment, command, Path("runs", "cut"))
        self._ends_alike(command, Path("runs", "cut"))
        # As a kill leaves it between the bundle and the result, too short a moment to hit.
        Path("runs", "cut", "result.json").unlink()
        self._ends_alike(command, Path("runs", "cut"))

    def _ends_alike(self, command: list[str], run: Path) -> None:
        _finished(command)
        assert (run / "result.json").exists()
        assert weights_in(run) == weights_in(Path("runs", "whole"))
        assert not list(run.glob(".bundle.*"))


def _around_saves(network: str, seed: int) -> list[Moment]:
    """After some saves, and while one is being written."""
    draw = random.Random(seed)
    moments = [_saved(network, draw.randint(1, 2)), _saving(network), _saved(network, draw.randint(1, 2))]
    draw.shuffle(moments)
    return moments


@pytest.mark.skipif(not ALL_CASES, reason="costly, and much like the others: make soak-cases")
def test_texts() -> None:
    reviews(Path("reviews"))
    recipe = Recipe("text", "reviews", "--epochs", "4")
    recipe.killed(
        _begun("mean"),
        *_around_saves("mean", 1),
        _trained("mean"),
        _begun("gru"),
        *_around_saves("gru", 2),
        _trained("gru"),
        EXPORTING,
    )
    recipe.command_killed(_begun("mean"), _begun("gru"), _trained("gru"), EXPORTING)


@pytest.mark.skipif(not ALL_CASES, reason="costly, and much like the others: make soak-cases")
def test_images() -> None:
    shapes(Path("photos"))
    recipe = Recipe("image", "photos", "--epochs", "4", "--augment", "flip,crop,brightness")
    recipe.killed(
        _begun("convolutions"),
        *_around_saves("convolutions", 3),
        _trained("convolutions"),
        EXPORTING,
    )
    recipe.command_killed(_begun("convolutions"), _trained("convolutions"), EXPORTING)


@pytest.mark.skipif(not ALL_CASES, reason="costly, and much like the others: make soak-cases")
def test_images_on_a_base_across_both_phases() -> None:
    shapes(Path("photos"), each=20, size=32)
    recipe = Recipe(
        "image",
        "photos",
        "--size",
        "32x32",
        "--base",
        "MobileNet",
        "--weights",
        base_weights(),
        "--epochs",
        "2",
    )
    recipe.killed(_saved("head", 1), _saving("head"), _begun("top"), _saving("top"), _trained("top"))


@pytest.mark.skipif(not ALL_CASES, reason="costly, and much like the others: make soak-cases")
def test_tables() -> None:
    sales(Path("sales.csv"))
    recipe = Recipe("table", "sales.csv", "--target", "price", "--epochs", "4")
    recipe.killed(
        _begun("plain"),
        *_around_saves("plain", 4),
        _trained("plain"),
        *_around_saves("periodic", 5),
        _trained("periodic"),
        EXPORTING,
    )
    recipe.command_killed(_begun("periodic"), _trained("periodic"))


CTRL_C = (signal.SIGINT, signal.SIGCONT)


def _in_the_middle(network: str) -> Moment:
    """Some epochs of ten steps are over, and some are not."""

    def holds(now: Watched) -> bool:
        names = [path.stem for path in (now.run / "checkpoints" / network).glob("*.stoker")]
        return any(15 <= int(name.rpartition("-")[2]) <= 40 for name in names)

    return f"{network} is half trained", holds


def test_ctrl_c_keeps_the_best_so_far_and_the_same_program_goes_on() -> None:
    sales(Path("sales.csv"))
    recipe = Recipe("table", "sales.csv", "--target", "price", "--epochs", "8")
    assert _stopped_at(_in_the_middle("plain"), ["mine.py"], recipe.run, CTRL_C) == 0
    result = json.loads((recipe.run / "result.json").read_text())
    assert result["state"] == "interrupted"
    assert list(result["networks"]) == ["plain"]
    assert 1 <= result["networks"]["plain"]["epochs"] < 8
    assert (recipe.run / "bundle" / "bundle.json").exists()
    recipe.killed()


IMPORTING: Moment = "TensorFlow is imported", lambda now: now.has_loaded("libtensorflow_framework")
BEGUN: Moment = "it begins", lambda now: (now.run / "asked").exists()


@pytest.mark.parametrize("moment", [IMPORTING, BEGUN], ids=lambda one: one[0])
def test_ctrl_c_before_training_is_one_line(moment: Moment) -> None:
    sales(Path("sales.csv"))
    command = ["-m", "stoker", "train", "table", "sales.csv", "--target", "price", "--name", "cut"]
    assert _stopped_at(moment, command, Path("runs", "cut"), CTRL_C) == 130
    assert "Traceback" not in Path("log").read_text()
    assert "run the same command again to resume" in Path("log").read_text()
