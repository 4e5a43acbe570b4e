"""From raw files to a trained and exported model: a recipe's way against pandas or Keras' loaders with `model.fit`.

    make bench-recipes

Same networks, batches and number of epochs, no early stopping, no baselines. Each run is a process of its own, with a
cold cache; the time is from the first line after the imports to the end of the export, which here includes its proof in
another process. Rounds are interleaved, and each has a seed of its own: scores depend on it more than on the way. Both
are scored on the same rows, put aside before.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import recipe_data

HERE = Path(__file__).parent / "programs" / "recipes"
_ASIDE = 10
WAYS = {"usual": "keras_way.py", "stoker": "ours.py"}


def table(where: Path) -> str:
    """The rows of the bike share table, drawn again until there are 200,000; every tenth is put aside."""
    path = Path(recipe_data.SETS["bike share"](where)[1])
    header, *rows = csv.reader(path.read_text().splitlines())
    random.seed(0)
    random.shuffle(rows)
    given, aside = rows[len(rows) // _ASIDE :], rows[: len(rows) // _ASIDE]
    with open(f"{path}.unseen", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *aside])
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *random.choices(given, k=200_000)])
    return str(path)


def put_aside(path: str) -> str:
    """Every tenth file of each class."""
    for folder in Path(path).iterdir():
        aside = Path(f"{path}.unseen", folder.name)
        aside.mkdir(parents=True)
        for file in sorted(folder.iterdir())[::_ASIDE]:
            file.rename(aside / file.name)
    return path


def few_images(where: Path) -> str:
    """A hundred digits of each class, and weights for a base: drawn, since only what it takes is of interest."""
    path = Path(recipe_data.mnist(where)[1])
    for folder in path.iterdir():
        for file in sorted(folder.iterdir())[100:]:
            file.unlink()
    made = (
        "import keras; keras.utils.set_random_seed(0); keras.applications.MobileNetV2(include_top=False, weights=None, "
        f"input_shape=(64, 64, 3), pooling='avg').save_weights({f'{path}.weights.h5'!r})"
    )
    subprocess.run([sys.executable, "-c", made], check=True, capture_output=True)
    return str(path)


def run(way: str, kind: str, data: str, epochs: int, seed: int, where: Path) -> dict[str, Any]:
    """One run, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=where) as scratch:
        words = [sys.executable, str(HERE / WAYS[way]), kind, data, f"{scratch}/out", str(epochs), str(seed)]
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "STOKER_STORE": "off", "STOKER_CACHE_DIR": f"{scratch}/cache"}
        done = subprocess.run(words, env={**os.environ, **quiet}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=["table", "text", "image", "base"])
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        where = Path(scratch)
        for kind in args.only:
            place = where / kind
            place.mkdir()
            made = {
                "table": table,
                "text": lambda place: put_aside(recipe_data.topics(place)[1]),
                "image": lambda place: put_aside(recipe_data.mnist(place)[1]),
                "base": few_images,
            }
            data = made[kind](place)
            found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
            for seed in range(args.rounds):
                for way in WAYS:
                    found[way].append(run(way, kind, data, args.epochs, seed, where))
            for way, runs in found.items():
                shown = "".join(f"  {key} {spread([one[key] for one in runs])}" for key in runs[0])
                print(f"{kind:<6} {way:<7}{shown}", flush=True)
            for key in ("seconds", "cpu"):
                ratios = [a[key] / b[key] for a, b in zip(found["usual"], found["stoker"], strict=True)]
                print(f"{kind:<6} by {key}: {spread(ratios)}x", flush=True)


def spread(values: list[float]) -> str:
    """The median, and the least and the most."""
    return f"{statistics.median(values):.3f} ({min(values):.3f} to {max(values):.3f})"


if __name__ == "__main__":
    main()
