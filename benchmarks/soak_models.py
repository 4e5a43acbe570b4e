"""Random models under Keras' `fit`, `evaluate` and `predict` and under Stoker's, to the bit; some are exported.

    PYTHONPATH=. python benchmarks/soak_models.py --count 2000 --seed 1

The models come from `tests/train/random_models.py`. TensorFlow grows with every model, so they run in chunks, each in a
process of its own. `--results FILE` keeps a line for each chunk, and a second call skips the chunks that have one.
A difference is shrunk to a small case, which ends its chunk. Exit code 1 if there was one.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
CHUNK = 40


def run_chunk(number: int, size: int, seed: int, export: bool) -> dict[str, Any]:
    """In a process of its own: models from this chunk's seed, until one differs."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from tests.train.comparing import Difference, KerasRefuses, compare, compare_export
    from tests.train.random_models import Case, cases

    logging.disable(logging.WARNING)
    counts: Counter[str] = Counter()
    last: list[tuple[Case, Difference]] = []
    refused: Counter[str] = Counter()

    @seeded(seed * 1_000_003 + number)
    @settings(
        max_examples=size,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases())
    def check(case: Case) -> None:
        counts["models"] += not last
        try:
            verdict = compare(case, plan=None if case.seed == 2 else "unfused, none")
            if export and verdict == "same" and not counts["exported"]:
                compare_export(case)
                counts["exported"] += 1
        except KerasRefuses as error:
            verdict = "refused"
            refused[str(error)[:160]] += not last
        except Difference as error:
            if not last:
                print(f"{error}\nshrinking {case}", file=sys.stderr, flush=True)
            last[:] = [(case, error)]
            raise
        counts[verdict] += not last

    try:
        check()
    except Difference:
        counts["different"] = 1
    found = [{"case": repr(case), "difference": str(error)[:2000]} for case, error in last]
    return {"chunk": number, "counts": counts, "found": found, "refused": dict(refused)}


def run_apart(number: int, size: int, options: argparse.Namespace) -> dict[str, Any]:
    """The chunk's process, and the line that it leaves."""
    own = [
        sys.executable,
        __file__,
        "--chunk",
        str(number),
        "--count",
        str(size),
        "--seed",
        str(options.seed),
    ]
    own += ["--no-exports"] if options.no_exports else []
    done = subprocess.run(own, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return {
            "chunk": number,
            "counts": {"crashed": 1},
            "found": [{"exit": done.returncode}],
            "refused": {},
        }
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return line


def main() -> int:
    """Run what is missing, and say what was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--no-exports", action="store_true", help="export none; otherwise one a chunk")
    parser.add_argument("--chunk", type=int, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.chunk is not None:
        print(json.dumps(run_chunk(options.chunk, options.count, options.seed, not options.no_exports)))
        return 0
    results = options.results or Path(tempfile.mkdtemp()) / "models.jsonl"
    done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    known = {line["chunk"] for line in done}
    for number, first in enumerate(range(0, options.count, CHUNK)):
        if number in known:
            continue
        line = run_apart(number, min(CHUNK, options.count - first), options)
        done.append(line)
        with results.open("a") as file:
            file.write(json.dumps(line) + "\n")
        for found in line["found"]:
            print(json.dumps(found, indent=1), flush=True)
        print(f"chunk {number}: {line['counts']}", flush=True)
    total: Counter[str] = Counter()
    for line in done:
        total.update(line["counts"])
    print(f"{dict(total)}; lines in {results}")
    return 1 if total["different"] or total["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
