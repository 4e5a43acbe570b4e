"""Run a program before and after its repair, and compare: are the results the same, and is it faster?"""

from __future__ import annotations

import json
import math
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from stoker.errors import StokerError, UsageError
from stoker.signals import handle_signals
from stoker.units import quantity, times

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\bnan\b|\binf\b")
# A number with a unit of time or of a rate tells how fast the program was, not what it computed.
_TIMED = re.compile(
    r"[-+]?\d+(?:\.\d+)?\s*(?:s|ms|us|µs|ns|sec|secs|seconds|min|minutes|h|hours|it/s|s/it|ms/step|s/step|us/step"
    r"|steps/s|step/s|examples/s|images/s|samples/s)\b|\b\d+:\d\d(?::\d\d)?\b"
)
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_TIMED_LINE = re.compile(r"\b(?:time|took|elapsed|duration|throughput|per second|speed|eta)\b", re.IGNORECASE)
# Calls that set the seed of Keras, of TensorFlow or of both.
_SEED = re.compile(r"\bset_(?:random_)?seed\b|\benable_op_determinism\b")
# A speedup below this means slower; a smaller difference is noise.
_SLOWER = 0.9
# What rounding may have become after many steps, as a share of a number.
_MOST_ROUNDING = 0.05
# How long an interrupted program may take to end. The files are put back after that.
_GRACE_S = 5.0


class VerifyError(StokerError):
    """The program could not be run for the comparison."""


class Terminated(BaseException):
    """SIGTERM asked us to end."""


@dataclass(frozen=True)
class FixOutcome:
    """The output and the speed of one run."""

    exit_code: int
    output: str
    wall_s: float
    startup_s: float
    steps: int
    steps_per_s: float | None
    # The id of the run's record.
    run_id: str = ""


@dataclass(frozen=True)
class Verdict:
    """The comparison of the program before and after."""

    same: bool
    speedup: float
    reason: str = ""
    # What to try if the difference may be rounding.
    hint: str = ""
    # Whether the speedup compares steps a second, as prices do.
    of_steps: bool = False

    @property
    def keep(self) -> bool:
        """Whether the repaired files should stay."""
        return self.same and self.speedup >= _SLOWER

    def __str__(self) -> str:
        if not self.same:
            return f"results differ: {self.reason}"
        if self.speedup >= 1.05:
            return f"same results, {times(self.speedup)} faster"
        if self.speedup >= _SLOWER:
            return f"same results, no faster ({self.speedup:.2f}x)"
        return f"same results, but slower ({self.speedup:.2f}x)"


def program_words(command: Sequence[str]) -> list[str]:
    """Return the program and its arguments: `-- python train.py args` means the same as `train.py args`.

    Raises:
        UsageError: the command names no program.
    """
    words = [word for index, word in enumerate(command) if not (index == 0 and word == "--")]
    if words and re.fullmatch(r"(?:.*/)?python[\d.]*", words[0]):
        words = words[1:]
    if not words:
        raise UsageError("name the program to run: `stoker fix --verify train.py`")
    return words


def run(words: Sequence[str]) -> FixOutcome:
    """Run the program under `stoker run`, which saves a record of its own.

    Raises:
        VerifyError: the run left no readable record.
    """
    with tempfile.TemporaryDirectory() as directory:
        record_path = Path(directory) / "record.json"
        command = [sys.executable, "-m", "stoker", "run", "--quiet", "--json", str(record_path), *words]
        # Capture bytes: text mode would turn the carriage returns of a progress bar into newlines.
        done = _run_to_end(command)
        try:
            record = json.loads(record_path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise VerifyError(f"{words[0]} could not be run to compare ({last})") from error
    return FixOutcome(
        done.returncode,
        done.stdout.decode(errors="replace"),
        float(record["wall_s"]),
        float(record.get("accounts", {}).get("startup") or 0.0),
        int(record.get("steps") or 0),
        record.get("steps_per_s"),
        str(record.get("id", "")),
    )


def _run_to_end(command: list[str]) -> subprocess.CompletedProcess[bytes]:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            out, err = process.communicate()
        except BaseException:
            # `stoker run` passes the signal on to the program.
            process.terminate()
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
            raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)


@contextmanager
def raise_when_terminated() -> Iterator[None]:
    """Raise `Terminated` in the block at the first SIGTERM; others must not disturb whoever cleans up after it."""
    received = False

    def raise_once(number: int, frame: FrameType | None) -> None:
        nonlocal received
        if not received:
            received = True
            raise Terminated

    with handle_signals((signal.SIGTERM,), raise_once):
        yield


def compare(before: FixOutcome, after: FixOutcome, tolerance: float = 1e-3) -> Verdict:
    """Compare two runs: whether both computed the same, and how much faster the second was."""
    speedup = _speedup(before, after)
    if before.exit_code != after.exit_code:
        return Verdict(False, speedup, f"exit code {before.exit_code} became {after.exit_code}")
    old, new = _numbers(before.output), _numbers(after.output)
    if len(old) != len(new):
        return Verdict(False, speedup, f"{quantity(len(old), 'printed number')} became {len(new)}")
    for place, (a, b) in enumerate(zip(old, new, strict=True)):
        same = (math.isnan(a) and math.isnan(b)) or math.isclose(
            a, b, rel_tol=tolerance, abs_tol=tolerance * 1e-2
        )
        if not same:
            return Verdict(False, speedup, f"{a:g} became {b:g}", _describe_rounding(place, a, b))
    return Verdict(True, speedup, of_steps=_have_same_steps(before, after))


def _describe_rounding(same: int, before: float, after: float) -> str:
    """Say how to allow a difference that may come from rounding, which training makes larger step by step."""
    off = abs(after - before) / max(abs(before), abs(after))
    if not same or not off <= _MOST_ROUNDING:
        return ""
    enough = 10 ** math.ceil(math.log10(off))
    return f"Numbers that agree before it: {same:,}. If it is rounding, allow it with --tolerance {enough:g}"


def _have_same_steps(before: FixOutcome, after: FixOutcome) -> bool:
    return bool(before.steps == after.steps and before.steps_per_s and after.steps_per_s)


def describe_missing_seed(words: Sequence[str]) -> str:
    """Say how to set a seed when results differ. Empty if the program sets one already, or is not a single file."""
    path = Path(words[0])
    if not path.is_file() or _SEED.search(path.read_text(encoding="utf-8", errors="replace")):
        return ""
    return (
        f"{path.name} sets no seed, so its results may differ from run to run: "
        "call keras.utils.set_random_seed(1) at its start and try again"
    )


def _speedup(before: FixOutcome, after: FixOutcome) -> float:
    if before.steps_per_s and after.steps_per_s and _have_same_steps(before, after):
        return after.steps_per_s / before.steps_per_s
    old, new = before.wall_s - before.startup_s, after.wall_s - after.startup_s
    return old / new if new > 0 else 1.0


def _numbers(output: str) -> list[float]:
    """Return the numbers a program printed, except times and those a progress bar overwrote."""
    found = []
    for drawn in _COLOUR.sub("", output).split("\n"):
        # How often a bar is redrawn depends on timing, so only its last state counts.
        line = drawn.rstrip("\r").rpartition("\r")[2]
        if not _TIMED_LINE.search(line):
            found += [float(token) for token in _NUMBER.findall(_TIMED.sub(" ", line))]
    return found
