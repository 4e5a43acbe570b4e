"""A million steps under `stoker run`: the record stays under 5 MB and the process does not grow for our sake.

    make soak
    python benchmarks/soak.py --steps 100000

The program makes every kind of event at every step (a call, a read, a NumPy feed, a batch from a pipeline, an
eager op) and prints its memory after the first tenth and at the end; the same program runs plain beside it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import sys
import numpy as np, tensorflow as tf
steps = int(sys.argv[1])
total = tf.Variable(0.0)
row = np.ones(32, np.float32)

@tf.function
def step(x, y):
    return total.assign_add(tf.reduce_mean(x) + tf.cast(y, tf.float32) * 0)

def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6

for number, y in enumerate(tf.data.Dataset.range(steps)):
    value = float(step(row, y) + 0.0)
    if number == steps // 10:
        early = resident_mb()
print("grown_mb", resident_mb() - early)
"""


def grown(command: list[str], directory: str) -> float:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        Path(directory, "program.py").write_text(PROGRAM, encoding="utf-8")
        words = ["program.py", str(args.steps)]
        plain = grown([sys.executable, *words], directory)
        measured = grown([sys.executable, "-m", "stoker", "run", "--quiet", *words], directory)
        (record,) = Path(directory, ".stoker", "runs").glob("*.json")
        size = record.stat().st_size
    print(
        f"{args.steps:,} steps: record {size / 1e6:.3f} MB; process grew {measured:.1f} MB ({plain:.1f} MB plain)"
    )
    if size > 5e6 or measured - plain > 50:
        sys.exit("too large")


if __name__ == "__main__":
    main()
