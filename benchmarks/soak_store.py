"""A program killed with SIGKILL at fifty random moments while it logs: nothing that was committed is lost or double.

    make soak-store
    python benchmarks/soak_store.py --kills 10 --seed 3

On SQLite, and on PostgreSQL where it is installed. All runs share one store. In every other life the store is
hindered for a while (SQLite: another process holds the lock; PostgreSQL: the server is restarted), so that the kill
also comes while values wait in the spool or are being written from it.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tracking.store import databases

from stoker.tracking.store import address, opening, queries, spool

PROGRAM = """
import sys
import stoker
from stoker.tracking.store import delivery, opening, writer
writer.INTERVAL_S = 0.01
delivery._FIRST_PAUSE_S = delivery._LONGEST_PAUSE_S = 0.02
opening.connect.__defaults__ = (0.05,)
run = stoker.track("killed", store=sys.argv[1])
step = 0
while True:
    for _ in range(100):
        run.log(step, loss=float(step))
        step += 1
    run.flush()
    print(run.id, step, flush=True)
"""


def life(url: str, chance: random.Random, hinder: Callable[[], None] | None) -> tuple[str, int]:
    """Start, let it log, kill it; the run and how many values it was told are kept."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    said = process.stdout.readline()
    hindering = threading.Thread(target=hinder) if hinder is not None else None
    if hindering is not None:
        hindering.start()
    killer = threading.Timer(chance.random() * 0.6, process.kill)
    killer.start()
    for line in process.stdout:
        said = line if line.endswith("\n") else said
    process.wait()
    if hindering is not None:
        hindering.join()
    run, count = said.split()
    return run, int(count)


def soak(name: str, url: str, kills: int, chance: random.Random, hinder: Callable[[], None]) -> None:
    store = address.parse(url)
    waited = 0
    for number in range(kills):
        run, promised = life(url, chance, hinder if number % 2 else None)
        waited += any(
            True for place in spool.list_directories(store) for _ in place.glob(f"{store.mark}-*.jsonl")
        )
        with queries.open_reader(store) as reader:
            steps = [step for step, _, _ in reader.points(run, "loss")]
        assert steps == list(range(len(steps))), f"kill {number}: {len(steps)} values, not in order or double"
        assert len(steps) >= promised, f"kill {number}: {promised} values were kept, {len(steps)} are there"
    print(f"{name}: {kills} kills, {waited} of them with values in the spool; none lost, none double")


def hold(path: Path) -> None:
    """Another process's lock, for a while."""
    connection = opening.connect(address.parse(f"sqlite:///{path}"), patience_s=30)
    with connection.transaction():
        time.sleep(0.3)
    connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        os.chdir(directory)
        path = Path(directory) / "stoker.db"
        soak("SQLite", f"sqlite:///{path}", args.kills, random.Random(args.seed), lambda: hold(path))
        try:
            with databases.server() as server:

                def restart() -> None:
                    server.stop("immediate")
                    server.start()

                soak("PostgreSQL", server.create(), args.kills, random.Random(args.seed), restart)
        except pytest.skip.Exception as why:
            print(why)


if __name__ == "__main__":
    main()
