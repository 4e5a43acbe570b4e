"""What `stoker memory` says that a change would need, against what doing it needs.

    make bench-memory-changes
    .venv/bin/python benchmarks/memory_changes.py --models mlp lstm

Ten small models. Predicted, from batches of 2 and 8 with the change: the peak of a batch of 256. Counted: the peak of a
plain run with this batch whose program makes the change itself. Results are kept as in memory.py.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

from memory import ENOUGH, MIB, TIMEOUT_S, Results, digest_of_code

from stoker.doctor.forecast.changes import BY_NAME
from stoker.doctor.forecast.child_request import BatchPlace
from stoker.doctor.forecast.growth import ScalingStep
from stoker.doctor.forecast.starting import ProgramRunner
from stoker.doctor.measure.launch import Target

PROGRAM = Path(__file__).parent / "programs" / "memory_change.py"
MODELS = (
    "mlp",
    "cnn",
    "residual",
    "separable",
    "unet",
    "autoencoder",
    "lstm",
    "gru",
    "transformer",
    "text_cnn",
)
# Each change, and into how many parts it cuts the batch.
CHANGES = {"mixed-precision": 1, "sgd": 1, "adafactor": 1, "accumulation": 4}
ROWS = (2, 8)
BATCH = 256
_TARGET = 0.10
_PLACE = BatchPlace("option", name="--batch")


def main() -> None:
    """Measure what is not known yet, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), metavar="MODEL")
    parser.add_argument("--results", type=Path, default=Path("build", "memory", "changes.jsonl"))
    args = parser.parse_args()
    code = hashlib.sha256((digest_of_code() + PROGRAM.read_text()).encode()).hexdigest()[:12]
    results = Results(args.results, code)
    results.read()
    print(f"| model | {' | '.join(CHANGES)} |\n|---|{'---|' * len(CHANGES)}")
    within: list[bool] = []
    for model in args.models:
        cells = [_compare(model, change, results, within) for change in CHANGES]
        print(f"| {model} | {' | '.join(cells)} |", flush=True)
    print(f"\n{sum(within)} of {len(within)} within {_TARGET:.0%}")


def _compare(model: str, change: str, results: Results, within: list[bool]) -> str:
    predicted = results.get(f"{model} {change} predicted", lambda: _predict(model, change))
    counted = results.get(f"{model} {change} counted", lambda: _count(model, change))
    off = predicted / counted - 1
    within.append(abs(off) <= _TARGET)
    return f"{predicted / MIB:,.1f}, {counted / MIB:,.1f} MiB: {off:+.1%}"


def _predict(model: str, change: str) -> int:
    runner = ProgramRunner(Target(str(PROGRAM), ["--model", model]), TIMEOUT_S)
    steps = 2 if BY_NAME[change].parts else 3
    traces = [runner.measure(_PLACE, rows, change, steps=steps) for rows in ROWS]
    # Memory of the software GPU grows by regions.
    return ScalingStep(traces).peak_at(-(-BATCH // CHANGES[change]), grows=True)


def _count(model: str, change: str) -> int:
    command = [sys.executable, str(PROGRAM), "--model", model, "--batch", str(BATCH), "--change", change]
    command += ["--parts", str(CHANGES[change]), "--device-memory", f"{ENOUGH >> 20}MiB"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    words = done.stdout.split()
    if "peak" not in words:
        raise RuntimeError((done.stderr.splitlines() or [f"exit code {done.returncode}"])[-1])
    return int(words[-1])


if __name__ == "__main__":
    main()
