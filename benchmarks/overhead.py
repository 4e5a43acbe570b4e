"""What measuring costs: the same programs plain, under `stoker run`, and under its peers.

    make bench-overhead                      # 5 rounds
    python benchmarks/overhead.py --rounds 3 --programs fit

Each program times its own loop (imports and the first trace are outside), on the clock and in CPU time of its
process, all threads included: CPU time is the steadier of the two, and the fairer on a machine that is not idle. One
round runs every way once, in an order that changes from round to round; a way's figure is the median over the rounds of
its ratio to the plain run of the same round, with the smallest and the largest. Only ratios within a round are
compared: the machine's speed drifts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
NAMES = ("fit", "function_loop", "eager_loop")


def ways(program: str, scratch: str) -> dict[str, list[str]]:
    """The commands to compare, by name; the first is what the others are measured against."""
    python = [sys.executable]
    return {
        "plain": [*python, program],
        "stoker run": [*python, "-m", "stoker", "run", "--quiet", program],
        "cProfile": [*python, "-m", "cProfile", "-o", f"{scratch}/cprofile", program],
        "pyinstrument": [*python, "-m", "pyinstrument", "-o", f"{scratch}/pyinstrument", program],
        "scalene": [*python, "-m", "scalene", "run", "--cpu-only", "-o", f"{scratch}/scalene.json", program],
        "tf.profiler, whole loop": [*python, program, "--tf-profiler"],
    }


def loop_seconds(command: list[str], scratch: str) -> tuple[float, float] | None:
    """Seconds and CPU seconds that the program says its loop took; None if the way failed, which is told."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith("loop_s "):
            return float(line.split()[1]), float(line.split()[3])
    print(f"failed: {' '.join(command[1:4])}\n{done.stdout[-300:]}{done.stderr[-300:]}", file=sys.stderr)
    return None


def measure(name: str, rounds: int, only: list[str]) -> dict[str, list[tuple[float, float]]]:
    """Ratios to plain, by way: of time and of CPU time."""
    ratios: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        commands = ways(str(PROGRAMS / f"{name}.py"), scratch)
        commands = {way: words for way, words in commands.items() if way == "plain" or way in only}
        order = list(commands)
        for number in range(rounds):
            seconds = {}
            for way in order[number % len(order) :] + order[: number % len(order)]:
                seconds[way] = loop_seconds(commands[way], scratch)
                print(f"  {name} round {number + 1}: {way} {seconds[way]}", file=sys.stderr)
            plain = seconds["plain"]
            for way, value in seconds.items():
                if plain and value and way != "plain":
                    ratios.setdefault(way, []).append((value[0] / plain[0], value[1] / plain[1]))
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--programs", nargs="+", default=NAMES, choices=NAMES)
    known = list(ways("", ""))[1:]
    parser.add_argument("--ways", nargs="+", default=known, choices=known)
    args = parser.parse_args()
    print(
        "| program | way | CPU time against plain, median | smallest | largest | time against plain, median |"
    )
    print("|---|---|---|---|---|---|")
    for name in args.programs:
        for way, values in measure(name, args.rounds, args.ways).items():
            times, cpus = zip(*values, strict=True)
            row = [f"{statistics.median(cpus):.2f}x", f"{min(cpus):.2f}x", f"{max(cpus):.2f}x"]
            print(f"| {name} | {way} | {' | '.join(row)} | {statistics.median(times):.2f}x |", flush=True)


if __name__ == "__main__":
    main()
