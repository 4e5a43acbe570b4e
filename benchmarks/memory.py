"""What `stoker memory` predicts for models of keras.applications, against what the software GPU counts.

    make bench-memory
    .venv/bin/python benchmarks/memory.py --models MobileNetV2 ResNet50

Each model is measured at batches of 2, 4 and 8. Predicted from that: the peak at three larger batches, and the
largest batch in 2 GiB. Counted: the peak of a plain run at each of these batches, and plain runs with 2 GiB around the
predicted largest batch.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

from stoker.doctor.forecast.answer import ROWS
from stoker.doctor.forecast.child_request import BatchPlace
from stoker.doctor.forecast.growth import ScalingStep
from stoker.doctor.forecast.starting import ProgramRunner
from stoker.doctor.measure.launch import Target
from stoker.units import size

PROGRAM = Path(__file__).parent / "programs" / "memory_model.py"
# Sides of the images: small, so that a batch that fills 2 GiB is emulated in reasonable time.
SIDES = {
    "MobileNet": 128,
    "MobileNetV2": 128,
    "MobileNetV3Small": 128,
    "EfficientNetB0": 128,
    "NASNetMobile": 96,
    "DenseNet121": 96,
    "ResNet50": 96,
    "ResNet50V2": 96,
    "VGG16": 96,
    "Xception": 96,
    "InceptionV3": 128,
    "ConvNeXtTiny": 64,
}
BATCHES = (16, 32, 64)
MEMORY = 2 << 30
# How far from the predicted largest batch is tried, until one fits and one does not.
_OFF = (0.03, 0.06, 0.12, 0.25)
_PLACE = BatchPlace("option", name="--batch")


def main() -> None:
    """One row for each model, as it is done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=SIDES, default=list(SIDES), metavar="MODEL")
    parser.add_argument("--keep", type=Path, help="a directory for the measured traces")
    args = parser.parse_args()
    print(
        "| model | side | predicted and counted at 16 | at 32 | at 64 | largest in 2 GiB, predicted | tried | s |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for model in args.models:
        began = time.monotonic()
        step = _measure(model, args.keep)
        cells = [_compare(model, step, rows) for rows in BATCHES]
        largest = step.largest_batch(MEMORY, grows=True)
        tried = _try_around(model, largest)
        words = [model, str(SIDES[model]), *cells, str(largest), tried, f"{time.monotonic() - began:.0f}"]
        print(f"| {' | '.join(words)} |", flush=True)


def _measure(model: str, keep: Path | None) -> ScalingStep:
    target = Target(str(PROGRAM), ["--model", model, "--size", str(SIDES[model])])
    traces = [ProgramRunner(target).measure(_PLACE, rows) for rows in ROWS]
    if keep is not None:
        keep.mkdir(exist_ok=True)
        for trace in traces:
            (keep / f"{model}-{trace.rows}.json").write_text(trace.to_json())
    return ScalingStep(traces)


def _compare(model: str, step: ScalingStep, rows: int) -> str:
    counted = _count_peak(model, rows, "16GiB")
    # Memory of the software GPU grows by regions.
    predicted = step.peak_at(rows, grows=True)
    return f"{size(predicted)}, {size(counted or 0)}: {predicted / (counted or predicted) - 1:+.1%}"


def _try_around(model: str, largest: int) -> str:
    """The nearest batches below and above the predicted one of which one fits and one does not."""
    fits = next((rows for off in _OFF if _fits(model, rows := round(largest * (1 - off)))), None)
    fails = next((rows for off in _OFF if not _fits(model, rows := round(largest * (1 + off)) + 1)), None)
    return f"{fits} fits, {fails} does not"


def _fits(model: str, rows: int) -> bool:
    return _count_peak(model, rows, str(MEMORY)) is not None


def _count_peak(model: str, rows: int, memory: str) -> int | None:
    """The counted peak of a plain run; None if it ran out of memory."""
    command = [sys.executable, str(PROGRAM), "--model", model, "--size", str(SIDES[model])]
    command += ["--batch", str(rows), "--device-memory", memory]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    words = done.stdout.split()
    if "peak" in words:
        return int(words[-1])
    # A kernel that finds no memory may end the process: the CPU kernel behind it does not check.
    if "memory" in words or done.returncode < 0:
        return None
    raise RuntimeError(done.stderr.splitlines()[-1])


if __name__ == "__main__":
    main()
