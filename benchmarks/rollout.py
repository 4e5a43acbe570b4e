"""What a candidate costs clients: `stoker serve`, with --shadow and with --canary 5%, asked by MLPerf LoadGen.

    make bench-rollout
    make bench-rollout OPTIONS="--rounds 3 --seconds 2"

All are asked at the same time, so that other work on the machine delays all alike: in turn, their 99th percentiles
differ by more than a candidate can cost. What chance does is seen from a second plain server. Requests come at random
times (LoadGen's Server scenario), together at parts of the rate that one server answers at most. LoadGen waits for all
answers, and each is compared with the model's. The candidate is a copy of the bundle, and rests already.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import urllib.request
from pathlib import Path

from loadgen import OWN, Found, LoadGen, prepare, way_of_stoker

_LOADS = (0.15, 0.3)


def show(load: float, found: dict[str, list[Found]]) -> None:
    """Print a row for each server: medians, and ratios to the plain server with the smallest and the largest."""
    for name, rounds in found.items():
        cells = [f"{load:.0%}", name, f"{sum(one['requests'] for one in rounds):,}"]
        cells += [str(sum(one["wrong"] for one in rounds))]
        for what, unit, per in (("p50", "ms", 1.0), ("p99", "ms", 1.0), ("cpu_s", "us", 1e6)):
            values, plain = (
                [per * one[what] / (one["requests"] if what == "cpu_s" else 1) for one in runs]
                for runs in (rounds, found[OWN])
            )
            ratios = sorted(one / other for one, other in zip(values, plain, strict=True))
            spread = f"{statistics.median(ratios):.2f}x ({ratios[0]:.2f} to {ratios[-1]:.2f})"
            cells += [f"{statistics.median(values):.3g} {unit}", spread]
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Both loads."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=6.0, help="the least duration of a run")
    parser.add_argument("--peers", required=True, help="a Python that has LoadGen")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        bundle, rows = prepare(Path(directory))
        candidate = str(shutil.copytree(bundle, Path(directory, "candidate")))
        ways = {
            OWN: way_of_stoker(bundle, 9121),
            f"{OWN}, again": way_of_stoker(bundle, 9124),
            "--shadow": way_of_stoker(bundle, 9122, "--shadow", candidate),
            "--shadow --canary 5%": way_of_stoker(bundle, 9123, "--shadow", candidate, "--canary", "5%"),
        }
        with LoadGen(ways, rows, args.peers, args.seconds, bound_ms=15.0) as loadgen:
            most, *_ = [loadgen.offline_rate(name) for name in ways]
            print(f"{most:,.0f} requests/s at most\n")
            print(
                "| load | server | asked | lost or wrong | p50 | ratio | p99 | ratio | CPU a request | ratio |"
            )
            print("|---" * 10 + "|")
            for load in _LOADS:
                show(load, loadgen.measure_together("Server", load * most / len(ways), args.rounds))
            for name in list(ways)[2:]:
                with urllib.request.urlopen(f"http://127.0.0.1:{ways[name].port}/shadow") as answer:
                    print(f"\n{name}: {json.load(answer)['model']}")


if __name__ == "__main__":
    main()
