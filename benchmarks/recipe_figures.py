"""Every real data set through `stoker train`: the table of docs/recipes.md.

make recipe-figures
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recipe_data import SETS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(SETS))
    parser.add_argument("--keep", metavar="DIRECTORY", help="where the data and the runs are left")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(args.keep or scratch)
        where.mkdir(parents=True, exist_ok=True)
        print("| data | rows | figure | network | best baseline | | seconds |\n|---|---|---|---|---|---|---|")
        for name in args.only:
            print(row(name, where), flush=True)


def row(name: str, where: Path) -> str:
    """One line of the table."""
    words = SETS[name](where)
    start = time.perf_counter()
    command = [sys.executable, "-m", "stoker", "train", *words, "--runs", str(where / "runs")]
    done = subprocess.run(
        [*command, "--name", name.replace(" ", "-").replace(",", "")], capture_output=True, text=True
    )
    if done.returncode:
        return f"| {name} | {done.stderr.strip().splitlines()[-1]} |"
    seconds = time.perf_counter() - start
    result = json.loads((where / "runs" / "latest" / "result.json").read_text())
    network, *others = result["contenders"]
    metric = next(iter(network["scores"]))
    best = min(others, key=lambda one: one["behind"]["value"])
    rows = round(result["rows"]["train"] / (1 - result["settings"]["held_out"]))
    winner = result["verdict"].split(":")[0]
    return (
        f"| {name} | {rows:,} | {metric} | {shown(network['scores'][metric])} | "
        f"{best['name']}: {shown(best['scores'][metric])} | {winner} | {seconds:.0f} |"
    )


def shown(score: dict[str, float]) -> str:
    digits = 3 if abs(score["value"]) < 10 else 1
    return f"{score['value']:.{digits}f} ({score['low']:.{digits}f} to {score['high']:.{digits}f})"


if __name__ == "__main__":
    main()
