"""Many bundles and checkpoints changed at random are loaded: each is refused in one line, or gives its answers.

    PYTHONPATH=. python benchmarks/soak_bundles.py --count 200 --seed 1

Each bundle is loaded in a process of its own that then answers its recorded examples: a traceback, a crash, a hang or a
file that appears beside it is a failure. Half of the bundles are changed by someone who also brings the hashes up to
date. Checkpoints (ten for each bundle) are read in this process.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

LOADER = """
import os, sys, warnings
warnings.simplefilter("ignore")
import stoker
from stoker.errors import StokerError
for line in sys.stdin:
    engine, _, place = line.strip().partition(" ")
    try:
        predictor = stoker.Predictor(place, engine=engine)
        predictor.warm()
        print("answers", flush=True)
    except StokerError as error:
        print("refused" if "\\n" not in str(error) else "refused in several lines", flush=True)
    except BaseException as error:
        print(f"raised {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
"""


class Loader:
    """A process that loads bundles; a new one when it dies."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def load(self, place: Path, engine: str) -> str:
        """What came of loading a bundle."""
        if self._process is None:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                [sys.executable, "-c", LOADER], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{engine} {place}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline().strip()
        if not line:
            code = self._process.wait()
            self._process = None
            return f"crashed with exit code {code}"
        return line


def soak_bundles(count: int, seed: int, directory: Path) -> collections.Counter[str]:
    """How the changed bundles ended, by outcome."""
    from tests.serve.bundles import made
    from tests.serve.safety.mutations import copy_of, mutate

    _, whole = made(directory)
    loader, outcomes = Loader(), collections.Counter[str]()
    for number in range(count):
        chance = random.Random(f"{seed}/{number}")
        place = copy_of(whole, directory / "copy")
        what = mutate(place, chance, forge=chance.random() < 0.5)
        before = sorted(directory.iterdir())
        outcome = loader.load(place, chance.choice(("session", "threads", "function")))
        if sorted(directory.iterdir()) != before:
            outcome = "wrote a file"
        outcomes[outcome] += 1
        if outcome not in ("answers", "refused"):
            print(f"bundle {number} of seed {seed} ({what}): {outcome}")
    return outcomes


def soak_checkpoints(count: int, seed: int, directory: Path) -> collections.Counter[str]:
    """How the changed checkpoints ended, by outcome."""
    import numpy as np
    from tests.train.checkpoint.hostile import mutated

    from stoker.train.checkpoint import files, saved

    path = directory / "checkpoint"
    arrays = {f"variable/{name}": np.arange(40, dtype=name) for name in ("float32", "int64", "uint8")}
    details = {"step": 1, "fingerprint": "f", "progress": {"epoch": 3, "logs": {"loss": 0.5}}}
    files.write(path, arrays.items(), details)
    whole, outcomes = path.read_bytes(), collections.Counter[str]()
    for number in range(count):
        path.write_bytes(mutated(whole, random.Random(f"{seed}/{number}")))
        try:
            saved.read(path)
            outcomes["read"] += 1
        except files.DamagedFile:
            outcomes["refused"] += 1
        except Exception as error:  # noqa: BLE001 - this is what is looked for
            outcomes[f"raised {type(error).__name__}"] += 1
            print(f"checkpoint {number} of seed {seed}: {type(error).__name__}: {error}")
    return outcomes


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as directory:
        for what, soak, count, good in (
            ("checkpoints", soak_checkpoints, 10 * args.count, {"read", "refused"}),
            ("bundles", soak_bundles, args.count, {"answers", "refused"}),
        ):
            outcomes = soak(count, args.seed, Path(directory))
            print(f"{what}: " + ", ".join(f"{number} {name}" for name, number in outcomes.most_common()))
            failures += sum(number for name, number in outcomes.items() if name not in good)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
