"""What `stoker memory` predicts for models of keras.applications, against what the software GPU counts.

    make bench-memory
    .venv/bin/python benchmarks/memory.py --models MobileNetV2 ResNet50

Each model is measured at batches of 2, 4 and 8. Predicted from that: the peak at three larger batches, and the
largest batch in 2 GiB. Counted: the peak of a plain run at each of these batches. Tried, once all peaks are counted:
plain runs with 2 GiB, of the batches that are just within 3 % of the predicted one.

Each result is written as it comes, so a second call goes on where the first was stopped. Results of other code do not
count.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker.doctor import forecast, memory
from stoker.doctor.forecast.answer import ROWS
from stoker.doctor.forecast.child_request import BatchPlace
from stoker.doctor.forecast.growth import ScalingStep
from stoker.doctor.forecast.starting import ProgramRunner
from stoker.doctor.forecast.trace import StepTrace
from stoker.doctor.measure.launch import Target

PROGRAM = Path(__file__).parent / "programs" / "memory_model.py"
# Sides of the images: small, so that a batch that fills 2 GiB is emulated in reasonable time. Models with few ops come
# first.
SIDES = {
    "MobileNet": 96,
    "MobileNetV2": 96,
    "MobileNetV3Small": 96,
    "MobileNetV3Large": 96,
    "ResNet50": 64,
    "ResNet50V2": 64,
    "VGG16": 96,
    "VGG19": 64,
    "Xception": 72,
    "ConvNeXtTiny": 64,
    "EfficientNetB0": 96,
    "EfficientNetV2B0": 96,
    "InceptionV3": 96,
    "EfficientNetV2B1": 96,
    "EfficientNetB1": 96,
    "ResNet101": 64,
    "ConvNeXtSmall": 64,
    "DenseNet121": 64,
    "ResNet101V2": 64,
    "NASNetMobile": 64,
}
BATCHES = (16, 32, 64)
MEMORY = 2 << 30
# Plenty for each of the batches, and no more than a shared machine can spare.
ENOUGH = 5 << 30
_PEAK_TARGET, _BATCH_TARGET = 0.05, 0.03
# How far from the predicted largest batch is tried, until one fits and one does not.
_OFF = (_BATCH_TARGET, 0.06, 0.12, 0.25)
_PLACE = BatchPlace("option", name="--batch")
# Of a run: it may get little of a shared machine.
TIMEOUT_S = 4 * 3600.0
MIB = 1 << 20


@dataclass
class Results:
    """The results by name, each also a line of a file."""

    file: Path
    code: str
    known: dict[str, Any] = field(default_factory=dict)

    def read(self) -> None:
        """Read the results that this code has left."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.known = {line["name"]: line for line in map(json.loads, lines) if line["code"] == self.code}

    def get(self, name: str, measure: Callable[[], Any]) -> Any:
        """Return the value of a name, measured now if it is not known."""
        if name not in self.known:
            began, used = time.monotonic(), _children_s()
            line = {"name": name, "value": measure(), "code": self.code}
            line |= {"s": round(time.monotonic() - began), "cpu_s": round(_children_s() - used)}
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a") as file:
                file.write(json.dumps(line) + "\n")
            self.known[name] = line
        return self.known[name]["value"]


def main() -> None:
    """Measure what is not known yet, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=SIDES, default=list(SIDES), metavar="MODEL")
    parser.add_argument("--results", type=Path, default=Path("build", "memory", "results.jsonl"))
    parser.add_argument(
        "--table", action="store_true", help="print the table of what is known, and measure nothing"
    )
    args = parser.parse_args()
    results = Results(args.results, digest_of_code())
    results.read()
    if not args.table:
        for model in args.models:
            results.get(f"{model} forecast", lambda: _predict(model, results))  # noqa: B023 - called at once
            for rows in BATCHES:
                results.get(f"{model} {rows}", lambda: _count_peak(model, rows, ENOUGH))  # noqa: B023
        for model in args.models:
            _try_around(model, results)
    _print_table(args.models, results)


def digest_of_code() -> str:
    """Return what tells apart states of the code that decides the results."""
    whole = hashlib.sha256(PROGRAM.read_bytes() + json.dumps(SIDES).encode())
    for package in (forecast, memory):
        for file in sorted(Path(str(package.__file__)).parent.glob("*.py")):
            whole.update(file.read_bytes())
    return whole.hexdigest()[:12]


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _predict(model: str, results: Results) -> dict[str, Any]:
    step = ScalingStep([_measure(model, rows, results) for rows in ROWS])
    # Memory of the software GPU grows by regions.
    peaks = {str(rows): step.peak_at(rows, grows=True) for rows in BATCHES}
    return {"peaks": peaks, "largest": step.largest_batch(MEMORY, grows=True)}


def _measure(model: str, rows: int, results: Results) -> StepTrace:
    """Return the trace of a model at a small batch. It is kept beside the results, for whoever asks why one missed."""
    file = results.file.with_name(f"{model}-{rows}.{results.code}.json")
    if file.exists():
        return StepTrace.from_json(file.read_text())
    target = Target(str(PROGRAM), ["--model", model, "--size", str(SIDES[model])])
    trace = ProgramRunner(target, TIMEOUT_S).measure(_PLACE, rows)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(trace.to_json())
    return trace


def _try_around(model: str, results: Results) -> None:
    """Try batches below and above the predicted one until one fits and one does not."""
    largest = results.known[f"{model} forecast"]["value"]["largest"]
    for off in _OFF:
        if _fits(model, math.ceil(largest / (1 + off)), results):
            break
    for off in _OFF:
        if not _fits(model, math.floor(largest / (1 - off)) + 1, results):
            break


def _fits(model: str, rows: int, results: Results) -> bool:
    return bool(results.get(f"{model} fits {rows}", lambda: _count_peak(model, rows, MEMORY) is not None))


def _count_peak(model: str, rows: int, memory_bytes: int) -> int | None:
    """The counted peak of a plain run; None if it ran out of memory."""
    command = [sys.executable, str(PROGRAM), "--model", model, "--size", str(SIDES[model])]
    command += ["--batch", str(rows), "--device-memory", f"{memory_bytes >> 20}MiB"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    words = done.stdout.split()
    if "peak" in words:
        return int(words[-1])
    # A kernel that finds no memory may end the process: the CPU kernel behind it does not check.
    if "memory" in words or done.returncode == -signal.SIGSEGV:
        return None
    raise RuntimeError(done.stderr.splitlines()[-1])


def _print_table(models: list[str], results: Results) -> None:
    heads = ["model", "image side", "peak at 16, predicted and counted", "at 32", "at 64"]
    print(f"| {' | '.join([*heads, 'largest batch in 2 GiB, predicted', 'tried'])} |")
    print("|---|---|---|---|---|---|---|")
    peaks: list[bool] = []
    batches: list[bool] = []
    for model in models:
        if f"{model} forecast" not in results.known:
            continue
        predicted = results.known[f"{model} forecast"]["value"]
        cells = [_peak_cell(model, rows, predicted["peaks"][str(rows)], results, peaks) for rows in BATCHES]
        tried = _tried_cell(model, predicted["largest"], results, batches)
        print(f"| {' | '.join([model, str(SIDES[model]), *cells, str(predicted['largest']), tried])} |")
    print(f"\n{sum(peaks)} of {len(peaks)} peaks within {_PEAK_TARGET:.0%}, ", end="")
    print(f"{sum(batches)} of {len(batches)} largest batches within {_BATCH_TARGET:.0%}; ", end="")
    print(f"{sum(line['cpu_s'] for line in results.known.values()):,} CPU seconds")


def _peak_cell(model: str, rows: int, predicted: int, results: Results, within: list[bool]) -> str:
    counted = results.known.get(f"{model} {rows}", {}).get("value")
    if counted is None:
        return "-"
    off = predicted / counted - 1
    within.append(abs(off) <= _PEAK_TARGET)
    return f"{predicted / MIB:,.0f}, {counted / MIB:,.0f} MiB: {off:+.1%}"


def _tried_cell(model: str, largest: int, results: Results, within: list[bool]) -> str:
    start = f"{model} fits "
    tried = {
        int(name[len(start) :]): line["value"]
        for name, line in results.known.items()
        if name.startswith(start)
    }
    fitting = max((rows for rows, fits in tried.items() if fits), default=None)
    failing = min((rows for rows, fits in tried.items() if not fits), default=None)
    if fitting is None or failing is None:
        return "-"
    near = largest / (1 + _BATCH_TARGET) <= fitting and failing <= largest / (1 - _BATCH_TARGET) + 1
    within.append(near)
    return f"{fitting:,} fits, {failing:,} does not"


if __name__ == "__main__":
    main()
