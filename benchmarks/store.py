"""The store against MLflow, W&B offline and Aim: what a value costs, what a list costs, what training notices.

    make bench-store
    python benchmarks/store.py --rounds 3 --without-fit

All ways take turns, in processes that live as long as the benchmark; figures are medians of ratios within a round.
PostgreSQL is measured where its programs are installed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".venv-peers" / "bin" / "python"
VALUES, BATCHED, SINGLE, CALLS = 200_000, 20_000, 200, 5_000


class Worker:
    """A process that does jobs of one way."""

    def __init__(self, python: str, way: str, directory: Path, **variables: str) -> None:
        directory.mkdir(parents=True)
        self._process = subprocess.Popen(
            [python, str(ROOT / "benchmarks" / "store_workers.py"), way, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=directory,
            env={**os.environ, **variables},
        )
        assert self._answer() == "ready"

    def seconds(self, job: str, count: int) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{job} {count}\n")
        self._process.stdin.flush()
        return float(self._answer())

    def per_item(self, job: str, count: int) -> float:
        return self.seconds(job, count) / count

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--without-fit", action="store_true", help="leave the training out")
    args = parser.parse_args()
    if not PEERS.exists():
        sys.exit("the peers are missing: make bench-store installs them")
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        measure(args.rounds, directory, stack)
    if not args.without_fit:
        subprocess.run([sys.executable, str(ROOT / "benchmarks" / "store_fit.py")], check=True)


def measure(rounds: int, directory: Path, stack: ExitStack) -> None:
    ours = Worker(sys.executable, "stoker", directory / "stoker")
    peers = {name: Worker(str(PEERS), name, directory / name) for name in ("mlflow", "wandb", "aim")}
    served = _on_postgresql(directory, stack)
    for worker in (ours, *peers.values(), served):
        if worker is not None:
            stack.callback(worker.close)
    rows: dict[str, list[tuple[float, float]]] = {}

    def note(what: str, ours_took: float, peer_took: float) -> None:
        rows.setdefault(what, []).append((ours_took, peer_took))

    mlflow = peers["mlflow"]
    for number in range(rounds + 1):
        value = ours.per_item("values", VALUES)
        batch, single = mlflow.per_item("log_batch", BATCHED), mlflow.per_item("log_metric", SINGLE)
        call = ours.per_item("calls", CALLS)
        others = {name: peers[name].per_item("calls", CALLS) for name in ("wandb", "aim")}
        listed, searched = ours.seconds("list", 1), mlflow.seconds("list", 1)
        remote = None if served is None else served.per_item("values", VALUES)
        if number == 0:
            # The first round fills tables and warms everything up.
            continue
        note("a value, until committed: MLflow's log_batch", value, batch)
        note("a value, until committed: MLflow's log_metric", value, single)
        note("a call of log: W&B offline", call, others["wandb"])
        note("a call of log: Aim", call, others["aim"])
        note("10,000 runs listed: MLflow's search_runs", listed, searched)
        if remote is not None:
            note("a value, until committed: SQLite, against PostgreSQL here", remote, value)
    show(rows)


def _on_postgresql(directory: Path, stack: ExitStack) -> Worker | None:
    import pytest
    from tests.tracking.store import databases

    try:
        server = stack.enter_context(databases.server())
    except pytest.skip.Exception as why:
        print(why)
        return None
    return Worker(sys.executable, "stoker", directory / "postgresql", BENCH_STORE=server.create())


def show(rows: dict[str, list[tuple[float, float]]]) -> None:
    print(
        "| what: against | Stoker | the other | ratio, median | smallest | largest |\n|---|---|---|---|---|---|"
    )
    for what, taken in rows.items():
        ratios = [peer / ours for ours, peer in taken]
        ours, peer = (statistics.median(column) for column in zip(*taken, strict=True))
        figures = (statistics.median(ratios), min(ratios), max(ratios))
        shown = " | ".join(f"{figure:,.1f}x" for figure in figures)
        print(f"| {what} | {_time(ours)} | {_time(peer)} | {shown} |")


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} us" if seconds < 0.01 else f"{seconds:.2f} s"


if __name__ == "__main__":
    main()
