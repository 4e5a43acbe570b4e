"""A job of two workers with its checkpoints in a bucket, killed at fifty random moments: it ends with the same bits.

    make soak-bucket
    PYTHONPATH=. python benchmarks/soak_bucket.py --kills 10 --seed 3

The bucket is on a real S3 server (moto's) in a process of its own, behind a proxy that fails, cuts and shortens one
answer in ten. A third of the kills come at any moment since a worker's start (importing, restoring), a third after an
upload, a third during one. After each kill every manifest must name files that are whole. Each worker has a disk of its
own. The job is compared with one on a common disk that was left alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from pathlib import Path

from tests.storage.buckets import Bucket
from tests.storage.s3 import proxy_to, s3_server

PROGRAM = """
import hashlib, json, os, sys
from pathlib import Path
rank = os.environ.get("STOKER_RANK", "0")
beside = Path(f"pid.{rank}.new")
beside.write_text(str(os.getpid()))
beside.rename(f"pid.{rank}")
# As on machines of their own: what the workers share is the bucket.
os.environ["STOKER_CACHE_DIR"] += f"-{rank}"
import keras, numpy as np, stoker

strategy = stoker.strategy()
keras.utils.set_random_seed(1)
x = np.random.default_rng(0).normal(size=(48 * 100 + 11, 16)).astype("float32")
y = x[:, :1] * x[:, 1:2] + x[:, 2:3]
with strategy.scope():
    model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), "mse")
history = stoker.fit(
    model, x, y, batch_size=48, epochs=int(sys.argv[2]), verbose=0,
    checkpoint=stoker.Checkpoint(sys.argv[1], every="300ms"),
)
weights = b"".join(one.numpy().tobytes() for one in model.weights)
found = {"bits": hashlib.sha256(weights).hexdigest(), "loss": history.history["loss"]}
Path(f"end.{rank}").write_text(json.dumps(found))
"""
FAULTS = ("500", "503", "cut", "short")


def launch(directory: Path, where: str, epochs: int, restarts: int) -> subprocess.Popen[bytes]:
    """Start the job."""
    directory.mkdir()
    (directory / "train.py").write_text(PROGRAM)
    own = {"TF_CPP_MIN_LOG_LEVEL": "3", "STOKER_STORE": "off", "STOKER_CACHE_DIR": str(directory / "disk")}
    words = ["launch", "-n", "2", "--max-restarts", str(restarts), "train.py", where, str(epochs)]
    with open(directory / "said", "wb") as said:
        return subprocess.Popen(
            [sys.executable, "-m", "stoker", *words],
            cwd=directory,
            env={**os.environ, **own},
            stdout=said,
            stderr=subprocess.STDOUT,
        )


def check_whole(bucket: Bucket) -> int:
    """How many manifests there are; ends the program if one names a file that is not whole."""
    manifests = [key for key in bucket.list_keys() if key.endswith(".manifest")]
    for key in manifests:
        for entry in json.loads(bucket.get(key))["files"]:
            content = bucket.get(f"run/{entry['name']}")
            if (len(content), zlib.crc32(content)) != (entry["size"], entry["crc"]):
                sys.exit(f"{key} names {entry['name']}, which is not whole")
    return len(manifests)


class Killer:
    """Kills one worker after another, and remembers how."""

    def __init__(self, directory: Path, job: subprocess.Popen[bytes], moments: random.Random) -> None:
        self.directory, self.job, self.moments = directory, job, moments
        self.kinds: Counter[str] = Counter()
        self.asked = threading.Event()
        self._killed: set[int] = set()

    def next_worker(self) -> int | None:
        """The number of a process that was not killed yet; None once the job has ended."""
        path = self.directory / f"pid.{self.moments.randrange(2)}"
        while self.job.poll() is None:
            if path.exists() and (found := int(path.read_text())) not in self._killed:
                return found
            time.sleep(0.01)
        return None

    def kill(self, kind: str) -> bool:
        """Kill a worker at a moment of this kind; False if the job has ended."""
        worker = self.next_worker()
        if worker is None:
            return False
        if kind != "any moment":
            self.asked.clear()
            # A request that puts something: the job saves again.
            while not self.asked.wait(0.05):
                if self.job.poll() is not None:
                    return False
        if kind != "during an upload":
            time.sleep(self.moments.uniform(0, 4.0 if kind == "any moment" else 0.5))
        for rank in (0, 1):
            path = self.directory / f"pid.{rank}"
            self._killed |= {int(path.read_text())} if path.exists() else set()
        try:
            os.kill(worker, signal.SIGKILL)
        except ProcessLookupError:
            return self.job.poll() is None
        self.kinds[kind] += 1
        return True


def soak(place: Path, kills: int, epochs: int, seed: int) -> None:
    """Run both jobs and compare them."""
    moments = random.Random(seed)
    alone = launch(place / "alone", "run", epochs, 0)
    if alone.wait():
        sys.exit((place / "alone" / "said").read_text())
    expected = json.loads((place / "alone" / "end.0").read_text())
    with s3_server() as port, proxy_to(port) as (proxy, front):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            os.environ[name] = "testing"
        os.environ |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{front}", "AWS_DEFAULT_REGION": "us-east-1"}
        bucket = Bucket("soak", port, proxy)
        job = launch(place / "killed", f"{bucket.url}/run", epochs, kills + 5)
        killer = Killer(place / "killed", job, moments)

        def fault(method: str, path: str, count: int) -> str:
            if method == "PUT" and path.endswith(".stoker"):
                killer.asked.set()
            return moments.choice(FAULTS) if moments.random() < 0.1 else ""

        proxy.fault = fault
        started = time.monotonic()
        for number in range(kills):
            if not killer.kill(("any moment", "after an upload", "during an upload")[number % 3]):
                break
            check_whole(bucket)
            print(f"{sum(killer.kinds.values())} kills, {time.monotonic() - started:.0f} s", flush=True)
        if job.wait():
            sys.exit((place / "killed" / "said").read_text()[-4000:])
        left = check_whole(bucket)
    for rank in (0, 1):
        if json.loads((place / "killed" / f"end.{rank}").read_text()) != expected:
            sys.exit(f"worker {rank} ended with other bits")
    print(f"{dict(killer.kinds)}; {dict(proxy.faults)} faults; {left} manifests left: bit-identical")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        soak(Path(place), args.kills, args.epochs, args.seed)


if __name__ == "__main__":
    main()
