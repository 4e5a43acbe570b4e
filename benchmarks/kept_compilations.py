"""Short jobs with XLA in a second process: with what the first one compiled, and without.

    python benchmarks/kept_compilations.py [--rounds 3] [--only dense ...]

Every job runs in processes of its own, in turn with and without kept compilations; one before the first round compiles
what is kept. The figures are CPU seconds of the call of `stoker.fit` and of the whole process, medians over the rounds,
and the ratio of those without to those with: above 1, the kept ones are quicker. It fails unless all end with the same
bits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

# Of the short jobs, those that XLA can run as one loop; small models train for more epochs, as jobs that use XLA do.
EPOCHS = {"text transformer": 2, "VAE": 20, "one batch, transformer": 20, "with validation": 200}


def run_job(name: str) -> None:
    """Train once in this process; print what it took, and what came out."""
    import short_jobs

    import stoker

    stoker_job = short_jobs.JOBS[name]
    short_jobs.keras.utils.set_random_seed(1)
    model = stoker_job.model()
    options = {**stoker_job.options, "epochs": EPOCHS[name]}
    begin = time.process_time()
    plan = stoker.Plan(feed="resident", jit="loop")
    stoker.fit(model, stoker_job.x, stoker_job.y, verbose=0, plan=plan, **options)
    fit_s = time.process_time() - begin
    bits = hashlib.sha256(b"".join(one.numpy().tobytes() for one in model.weights)).hexdigest()
    print(json.dumps({"fit": fit_s, "all": time.process_time(), "bits": bits}))


def measure(name: str, cache: str, keep: bool) -> dict[str, Any]:
    """The job in a process of its own."""
    own = {"STOKER_CACHE_DIR": cache, "STOKER_KEEP_COMPILATIONS": str(int(keep)), "STOKER_STORE": "off"}
    done = subprocess.run(
        [sys.executable, __file__, "--run", name],
        env={**os.environ, **own, "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="names of jobs, or parts of them")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        run_job(options.run)
        return
    print("| job | fit without, s | fit kept, s | fit | whole process |\n|---|---|---|---|---|", flush=True)
    for name in EPOCHS:
        if options.only and not any(part in name for part in options.only):
            continue
        with tempfile.TemporaryDirectory() as cache:
            first = measure(name, cache, True)
            took: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
            for number in range(options.rounds):
                for keep in (True, False) if number % 2 else (False, True):
                    took[keep].append(measure(name, cache, keep))
        if {one["bits"] for one in (*took[True], *took[False])} != {first["bits"]}:
            sys.exit(f"{name}: the bits differ")
        fit, whole = (
            statistics.median(a[what] / b[what] for a, b in zip(took[False], took[True], strict=True))
            for what in ("fit", "all")
        )
        without, kept = (statistics.median(one["fit"] for one in took[keep]) for keep in (False, True))
        print(f"| {name} | {without:.2f} | {kept:.2f} | {fit:.2f}x | {whole:.2f}x |", flush=True)


if __name__ == "__main__":
    main()
