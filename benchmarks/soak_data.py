"""A large CSV file is read, cached and trained on, shuffled: how far the process grows above the model's own memory.

    make soak-data
    python benchmarks/soak_data.py --gb 0.5

The memory said is what only this process holds (anonymous pages, at their peak). The mapped cache is shown beside it:
its pages are the system's, which takes them back whenever something else needs room.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

PROGRAM = """
import sys, threading, time
import keras, numpy as np, stoker

peak = {"RssAnon": 0, "RssFile": 0}

def memory():
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    return {name: int(lines[name].split()[0]) / 1e3 for name in peak}

def watch():
    while True:
        for name, value in memory().items():
            peak[name] = max(peak[name], value)
        time.sleep(0.02)

path, cache = sys.argv[1:]
small = stoker.data.csv(path + ".head", label="y", batch_size=1024, shuffle=True, cache=False)

def trained(dataset):
    inputs = dataset.features.inputs()
    x = keras.layers.Dense(64, "relu")(dataset.features.encode(inputs))
    model = keras.Model(inputs, keras.layers.Dense(1)(x))
    model.compile("adam", "mse")
    stoker.fit(model, dataset, epochs=1, verbose=0, plan="streamed")

# Twice: what a second model of the process takes is the model's own.
trained(small)
trained(small)
base = memory()
threading.Thread(target=watch, daemon=True).start()
start = time.time()
dataset = stoker.data.csv(path, label="y", batch_size=1024, shuffle=True, cache=cache)
read = time.time() - start
trained(dataset)
print(dataset.rows, read, time.time() - start, peak["RssAnon"] - base["RssAnon"], peak["RssFile"] - base["RssFile"])
"""


def write(path: Path, size: float) -> None:
    """A file of 30 columns, made of one block of rows again and again."""
    import numpy as np

    random = np.random.default_rng(0)
    names = [f"f{i}" for i in range(16)] + [f"i{i}" for i in range(6)] + [f"c{i}" for i in range(7)] + ["y"]
    header = ",".join(names) + "\n"
    rows = []
    for _ in range(20_000):
        numbers = [f"{x:.5f}" for x in random.normal(size=16)]
        whole = [str(x) for x in random.integers(0, 10_000, 6)]
        words = [f"value_{x}" for x in random.integers(0, 50, 7)]
        rows.append(",".join([*numbers, *whole, *words, f"{random.normal():.4f}"]))
    block = "\n".join(rows) + "\n"
    Path(f"{path}.head").write_text(header + block)
    with path.open("w") as file:
        file.write(header)
        for _ in range(int(size * 1e9 / len(block)) + 1):
            file.write(block)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gb", type=float, default=2.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "t.csv")
        write(path, args.gb)
        size = path.stat().st_size
        command = [sys.executable, "-c", PROGRAM, str(path), str(Path(directory, "cache"))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
    rows, read, whole, own, mapped = (float(word) for word in done.stdout.split()[-5:])
    print(
        f"{size / 1e9:.2f} GB, {rows:,.0f} rows: read in {read:.0f} s, read and trained one epoch in {whole:.0f} s; "
        f"the process grew by {own:.0f} MB of its own at the peak, {mapped:.0f} MB of mapped cache beside it"
    )
    raise SystemExit(own > 600)


if __name__ == "__main__":
    main()
