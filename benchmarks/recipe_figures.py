"""Every real data set through `stoker train`: the table of docs/recipes.md.

    make recipe-figures
    python benchmarks/recipe_figures.py --only digits --epochs 12 --keep figures

Each run is asked for its raw test rows over REST, and its program is ejected and run.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from recipe_checks import ejected_alike, served_alike
from recipe_data import SETS

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(SETS))
    parser.add_argument("--keep", metavar="DIRECTORY", help="where the data and the runs are left")
    parser.add_argument("--epochs", metavar="N", help="the most there are, where a machine is slow")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(args.keep or scratch)
        where.mkdir(parents=True, exist_ok=True)
        columns = (
            "data",
            "rows",
            "figure",
            "exported model",
            "best of the others",
            "",
            "served alike",
            "ejected equal",
            "seconds",
        )
        print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
        for name in args.only:
            print(row(name, where, ["--epochs", args.epochs] if args.epochs else []), flush=True)


def row(name: str, where: Path, more: list[str]) -> str:
    """One line of the table."""
    words = [*SETS[name](where), *more]
    run = where / "runs" / name.replace(" ", "-").replace(",", "")
    start = time.perf_counter()
    command = [sys.executable, "-m", "stoker", "train", *words, "--runs", str(run.parent), "--name", run.name]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return f"| {name} | {done.stderr.strip().splitlines()[-1]} |"
    seconds = time.perf_counter() - start
    result = json.loads((run / "result.json").read_text())
    exported, *others = result["contenders"]
    metric = next(iter(exported["scores"]))
    best = min(others, key=lambda one: one["behind"]["value"])
    said = result["verdict"].split(":")[0]
    winner = f"ties with {best['name']}" if said.endswith(" are tied") else said
    return (
        f"| {name} | {rows_in(Path(words[1])):,} | {metric} | "
        f"{exported['name']}: {shown(exported['scores'][metric])} | "
        f"{best['name']}: {shown(best['scores'][metric])} | {winner} | {served_alike(result)} | "
        f"{ejected_alike(words, run)} | {seconds:.0f} |"
    )


def rows_in(data: Path) -> int:
    """Of a table, or of a folder with a folder for each class."""
    if data.is_dir():
        return sum(1 for _ in data.glob("*/*"))
    with data.open(newline="", encoding="utf-8") as file:
        return sum(1 for _ in csv.reader(file)) - 1


def shown(score: dict[str, float]) -> str:
    digits = 3 if abs(score["value"]) < 10 else 1
    return f"{score['value']:.{digits}f} ({score['low']:.{digits}f} to {score['high']:.{digits}f})"


if __name__ == "__main__":
    main()
