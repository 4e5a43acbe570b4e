"""Random tf.data pipelines through the tuner: the same elements in two epochs, and never slower.

    make soak-pipelines
    PYTHONPATH=. python benchmarks/soak_pipelines.py --count 100 --seed 5 --timed 10

Every change that the tuner can make is made, faster or not, and all elements of two epochs are compared with those of
the pipeline as it was. Of every `--timed` pipelines one goes through `stoker.tune` itself as well, and both are then
timed in turn by CPU time. A pipeline that shows a fault is made as short as it can be while the fault stays.
"""

from __future__ import annotations

import argparse
import collections
import statistics
import sys
import time
from typing import Any

from tests.data.tuning.judging import changed
from tests.data.tuning.random_pipelines import Piece, build, draw_pieces, read_elements, shrink

import stoker

ROUNDS = 5
ROUND_S = 0.3
LEAST = 0.95


def find_fault(pieces: list[Piece]) -> str | None:
    """What is wrong with the tuned pipeline, if anything is."""
    tuned, _ = changed(build(pieces))
    expected = build(pieces)
    for epoch in (1, 2):
        ours, theirs = read_elements(tuned), read_elements(expected)
        if ours != theirs:
            where = next(
                (n for n, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None
            )
            return f"epoch {epoch}, element {where}: {len(ours)} elements instead of {len(theirs)}"
    return None


def measure_speed(pieces: list[Piece]) -> float | None:
    """How many times as fast as before `stoker.tune` made it, by CPU time; None if it left it alone."""
    before = build(pieces).repeat()
    tuned = stoker.tune(build(pieces))
    if not tuned.tuning.changes:
        return None
    after = tuned.repeat()
    ratios = []
    for _ in range(ROUNDS):
        # In turn, so that both meet the same machine.
        ratios.append(cost_per_element(before) / cost_per_element(after))
    return statistics.median(ratios)


def cost_per_element(dataset: Any) -> float:
    """CPU seconds an element, once it runs."""
    iterator = iter(dataset)
    for _ in range(20):
        next(iterator)
    elements, began, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - began < ROUND_S:
        next(iterator)
        elements += 1
    return (time.process_time() - cpu) / elements


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first pipeline")
    parser.add_argument("--timed", type=int, default=25, help="one in so many is timed; 0 for none")
    args = parser.parse_args()
    changes: collections.Counter[str] = collections.Counter()
    faults, ratios = 0, []
    for seed in range(args.seed, args.seed + args.count):
        pieces = draw_pieces(seed)
        fault = find_fault(pieces)
        if fault is not None:
            faults += 1
            shortest = shrink(pieces, lambda fewer: find_fault(fewer) is not None)
            print(f"seed {seed}: {fault}: {[tuple(piece) for piece in shortest]}", flush=True)
        _, report = changed(build(pieces))
        changes.update({change.name for change in report.changes})
        if args.timed and seed % args.timed == 0 and read_elements(build(pieces), 1):
            ratio = measure_speed(pieces)
            if ratio is not None:
                ratios.append(ratio)
                if ratio < LEAST:
                    print(
                        f"seed {seed}: {ratio:.2f}x by CPU time: {[tuple(piece) for piece in pieces]}",
                        flush=True,
                    )
    made = ", ".join(f"{name} in {count}" for name, count in changes.most_common())
    print(f"{args.count} pipelines, {faults} with other elements ({made})")
    if ratios:
        spread = f"median {statistics.median(ratios):.2f}x, least {min(ratios):.2f}x, most {max(ratios):.2f}x"
        slower = sum(ratio < LEAST for ratio in ratios)
        print(f"{len(ratios)} changed and timed by CPU time: {spread}; {slower} below {LEAST}x")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
