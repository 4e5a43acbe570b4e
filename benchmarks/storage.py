"""What rows from a bucket cost against rows on this disk: the first epoch, later ones, and the plain download.

A real S3 server (moto's, a process of its own) on loopback holds Parquet files. Each figure is the median of several
rounds, each in a process of its own, by the wall clock and in CPU time of that process. What a process needs once (the
imports, the client of the server) is not timed:

- `download`: the same bytes by parallel GETs (s3fs, 16 at a time) into memory: what `aws s3 cp` would wait for;
- `copy`: `stoker.storage.local_path` with an empty cache;
- `first epoch`: `stoker.data.parquet` of the URL with an empty cache, and one pass; `first local epoch` of local files;
- `copy, then first epoch`: the same, but nothing is parsed before all files are there;
- `local epoch`, `warm epoch`: a pass over rows read before, from local files and from the URL.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES, ROWS, COLUMNS, ROUNDS = 8, 250_000, 16, 5

CHILD = """
import json, os, sys, time
kind, where = sys.argv[1:]
def read():
    import stoker
    return stoker.data.parquet(where, label="c0", batch_size=1024, shuffle=True)
def spend(dataset):
    for _ in dataset:
        pass
if kind == "download":
    from concurrent.futures import ThreadPoolExecutor
    import fsspec
    system, path = fsspec.core.url_to_fs(where)
elif kind == "copy":
    from stoker import storage
    import s3fs
else:
    import stoker, tensorflow, pyarrow.parquet
    stoker.data.parquet
    if where.startswith("s3"):
        import fsspec
        fsspec.core.url_to_fs(where)
if kind in ("local epoch", "warm epoch"):
    dataset = read()
    spend(dataset)
wall, cpu = time.perf_counter(), time.process_time()
if kind == "download":
    parts = [(one["name"], start) for one in system.ls(path, detail=True) for start in range(0, one["size"], 8 << 20)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda part: len(system.cat_file(part[0], start=part[1], end=part[1] + (8 << 20))), parts))
elif kind == "copy":
    storage.local_path(where)
elif kind.endswith("first epoch"):
    if kind.startswith("copy"):
        from stoker import storage
        storage.local_path(where, (".parquet",), deep=False)
    spend(read())
else:
    spend(dataset)
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""


def _write(root: Path) -> int:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(0)
    for number in range(FILES):
        columns = {f"c{index}": draw.random(ROWS, np.float32) for index in range(COLUMNS)}
        pq.write_table(pa.table(columns), root / f"{number}.parquet", compression="none")
    return sum(path.stat().st_size for path in root.iterdir())


def _time(kind: str, where: str, cache: str | None) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as fresh:
        own = {"STOKER_CACHE_DIR": cache or fresh, "STOKER_STORE": "off", "TF_CPP_MIN_LOG_LEVEL": "3"}
        environment = {**os.environ, **own}
        command = [sys.executable, "-c", CHILD, kind, where]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    wall, cpu = json.loads(done.stdout.splitlines()[-1])
    return wall, cpu


def main() -> None:
    """Print the table."""
    sys.path.insert(0, str(ROOT))
    import boto3
    from tests.storage.s3 import s3_server

    os.environ |= dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "testing")
    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
    with s3_server() as port, tempfile.TemporaryDirectory() as local, tempfile.TemporaryDirectory() as cache:
        os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{port}"
        total = _write(Path(local))
        client = boto3.client("s3")
        client.create_bucket(Bucket="bench")
        for path in Path(local).iterdir():
            client.upload_file(str(path), "bench", f"rows/{path.name}")
        places = {
            "download": ("s3://bench/rows", None),
            "copy": ("s3://bench/rows", None),
            "copy, then first epoch": ("s3://bench/rows", None),
            "first epoch": ("s3://bench/rows", None),
            "first local epoch": (local, None),
            "local epoch": (local, cache),
            "warm epoch": ("s3://bench/rows", cache),
        }
        places = {kind: places[kind] for kind in sys.argv[1:] or places}
        times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in places}
        started = time.perf_counter()
        for _ in range(ROUNDS):
            for kind, (where, kept) in places.items():
                times[kind].append(_time("first epoch" if kind == "first local epoch" else kind, where, kept))
    print(
        f"{total / 1e6:.0f} MB in {FILES} files, {ROUNDS} rounds, {time.perf_counter() - started:.0f} s in all"
    )
    print(f"{'':22} {'wall s':>8} {'least':>8} {'most':>8} {'CPU s':>8}")
    for kind, found in times.items():
        walls = [wall for wall, _ in found]
        cpus = [cpu for _, cpu in found]
        figures = (statistics.median(walls), min(walls), max(walls), statistics.median(cpus))
        print(f"{kind:22} " + " ".join(f"{one:8.2f}" for one in figures))


if __name__ == "__main__":
    main()
