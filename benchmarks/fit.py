"""How fast `stoker.fit`, `stoker.predict` and `stoker.evaluate` are, against Keras, hand-written loops and the limit.

    make bench-fit                             # everything
    python benchmarks/fit.py --only mlp rows   # some of it
    python benchmarks/fit.py --rounds 9

Every case has a process of its own. There all ways are warmed up (what that took is a column), then run in rounds,
in an order that changes from round to round; a round's figure is the median epoch. Only ratios within a round are
compared, since the machine's speed drifts: the figure is their median, with the smallest and the largest.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

TRAINING = ("mlp", "linear", "wide", "cnn", "text", "stream")
INFERENCE = ("rows", "predict", "evaluate")
BASE = "Keras fit"
OURS = "stoker.fit"
LIMIT = "the limit"
Result = dict[str, Any]


def rounds_of(ways: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds by way and round, the order turning."""
    names = list(ways)
    took: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            took[name].append(ways[name]())
    return took


def train(name: str, rounds: int, directory: Path) -> Result:
    """One training case: seconds a step, and what the first call cost beyond its epochs."""
    import fit_ways
    from fit_cases import CASES

    case = CASES[name]
    data = case.data(directory)
    makers = {**fit_ways.PEERS, OURS: fit_ways.stoker_fit}
    if case.limit:
        makers[LIMIT] = fit_ways.limit
    epochs, first = {}, {}
    for way, make in makers.items():
        started = time.perf_counter()
        epochs[way] = make(case, data)
        took = epochs[way](3)
        first[way] = max(0.0, time.perf_counter() - started - 3 * min(took))

    def round_of(run: Callable[[int], list[float]]) -> Callable[[], float]:
        return lambda: statistics.median(run(case.epochs)) / case.steps

    took = rounds_of({way: round_of(run) for way, run in epochs.items()}, rounds)
    plan = fit_ways.plans[-1]
    return {
        "title": case.title,
        "seconds": took,
        "first": first,
        "plan": f"{plan.feed}, XLA: {plan.jit}",
        "why": f"{plan.reasons} {plan.figures}",
    }


def infer(name: str, rounds: int, directory: Path) -> list[Result]:
    import inference_cases

    return [
        {"title": title, "seconds": rounds_of(ways, rounds)}
        for title, ways in inference_cases.CASES[name](directory)
    ]


def in_child(name: str, rounds: int) -> Any:
    command = [sys.executable, __file__, "--child", name, "--rounds", str(rounds)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def spread(values: list[float], digits: int = 2) -> str:
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f}x ({low:.{digits}f} to {high:.{digits}f})"


def ratios(took: dict[str, list[float]], slow: str, fast: str) -> list[float]:
    return [a / b for a, b in zip(took[slow], took[fast], strict=True)]


def training_table(results: list[Result]) -> list[str]:
    lines = [
        "| case | way | us a step | speed against Keras fit | stoker.fit against it | first call, s |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        took = result["seconds"]
        for way, values in took.items():
            own = "" if way == OURS else spread(ratios(took, way, OURS))
            cells = (
                result["title"],
                f"{way} ({result['plan']})" if way == OURS else way,
                f"{statistics.median(values) * 1e6:.0f}",
                spread(ratios(took, BASE, way)),
                own,
                f"{result['first'][way]:.1f}",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def inference_table(results: list[Result]) -> list[str]:
    lines = ["| case | way | ms | stoker against it |", "|---|---|---|---|"]
    for result in results:
        took = result["seconds"]
        ours = next(way for way in took if way.startswith("stoker"))
        for way, values in took.items():
            own = (
                "" if way == ours else spread(ratios(took, way, ours), 1 if "loop" in result["title"] else 2)
            )
            lines.append(f"| {result['title']} | {way} | {statistics.median(values) * 1e3:.3g} | {own} |")
    return lines


def verdicts(results: list[Result]) -> list[str]:
    """Each case against the best of its peers, and against the limit."""
    lines = []
    for result in results:
        took = result["seconds"]
        peers = [way for way in took if way not in (OURS, LIMIT)]
        best = min(peers, key=lambda way: statistics.median(took[way]))
        line = f"{result['title']}: {spread(ratios(took, best, OURS))} the best peer ({best})"
        if LIMIT in took:
            line += f"; {spread(ratios(took, OURS, LIMIT))} the limit's time"
        line += f"\n    {result['plan']}: {result['why']}"
        lines.append(line)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=TRAINING + INFERENCE, default=TRAINING + INFERENCE)
    parser.add_argument("--child", choices=TRAINING + INFERENCE, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        with tempfile.TemporaryDirectory() as directory:
            os.chdir(directory)  # no plan is remembered from an earlier run
            run = train if args.child in TRAINING else infer
            print(json.dumps(run(args.child, args.rounds, Path(directory))))
        return
    trained, inferred = [], []
    for name in args.only:
        started = time.perf_counter()
        if name in TRAINING:
            trained.append(in_child(name, args.rounds))
            print(*verdicts(trained[-1:]), sep="\n", end=" ")
        else:
            inferred += in_child(name, args.rounds)
            print(name, end=" ")
        print(f"[{time.perf_counter() - started:.0f} s]", flush=True)
    if trained:
        print("", *training_table(trained), sep="\n")
    if inferred:
        print("", *inference_table(inferred), sep="\n")


if __name__ == "__main__":
    main()
