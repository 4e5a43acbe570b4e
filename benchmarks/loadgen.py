"""MLPerf LoadGen asks `stoker serve` and Mosec over HTTP: SingleStream, Offline and Server, interleaved.

    make bench-loadgen
    make bench-loadgen OPTIONS="--rounds 3 --seconds 5"

First the largest rate is searched at which LoadGen finds a Server run of Stoker VALID: 99 % of the answers within the
bound. Then both are asked at that rate, in turn. The settings are LoadGen's defaults, but for the shorter duration and
MLPerf's bound for image classification (15 ms).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from serve import HERE, cpu_of, exported, started, wait_for

OWN: Final = "stoker serve"
CLIENT: Final = Path(__file__).parent / "loadgen_client.py"
_ROWS: Final = 1024
_STEPS: Final = 16  # the rates that are tried, as parts of what Offline gives
_TRIES: Final = 3  # other work on the machine may spoil one
Found = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """A server: how it is started, and where it answers."""

    command: list[str]
    port: int
    path: str


def way_of_stoker(bundle: Path, port: int, *options: str) -> Way:
    """`stoker serve` with these options."""
    command = [sys.executable, "-m", "stoker", "serve", f"model={bundle}", "--port", str(port), *options]
    return Way(command, port, "/v1/models/model:predict")


class LoadGen:
    """Servers, and LoadGen's runs against them."""

    def __init__(self, ways: dict[str, Way], rows: Path, peers: str, seconds: float, bound_ms: float) -> None:
        self.ways, self.rows, self.peers = ways, rows, peers
        self.seconds, self.bound_ms = seconds, bound_ms
        self.wrong = 0
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> LoadGen:
        for name, way in self.ways.items():
            self._running[name] = started(way.command)
        for name, way in self.ways.items():
            if not wait_for(way.port, way.path, self._running[name]):
                self.__exit__()
                raise SystemExit(f"{name} did not start")
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._running.values():
            if server.poll() is None:
                os.killpg(server.pid, 9)
            server.wait()

    def measure(self, name: str, scenario: str, rate: float) -> Found:
        """One run against this server; what LoadGen says, and the CPU time of the server."""
        process, way = self._running[name].pid, self.ways[name]
        order = {"scenario": scenario, "port": way.port, "path": way.path, "rows": str(self.rows)}
        order |= {"rate": rate, "seconds": self.seconds, "bound_ms": self.bound_ms}
        before = cpu_of(process)
        done = subprocess.run(
            [self.peers, str(CLIENT), json.dumps(order)], stdout=subprocess.PIPE, check=True
        )
        found: Found = json.loads(done.stdout)
        self.wrong += found["wrong"]
        return found | {"cpu_s": cpu_of(process) - before}

    def measure_in_turn(self, scenario: str, rates: dict[str, float], rounds: int) -> dict[str, list[Found]]:
        """So many rounds in which every server has its turn."""
        found: dict[str, list[Found]] = {name: [] for name in self.ways}
        for _ in range(rounds):
            for name, runs in found.items():
                runs.append(self.measure(name, scenario, rates[name]))
        return found

    def measure_together(self, scenario: str, rate: float, rounds: int) -> dict[str, list[Found]]:
        """So many rounds in which all servers are asked at the same time."""
        found: dict[str, list[Found]] = {name: [] for name in self.ways}
        with ThreadPoolExecutor(len(self.ways)) as pool:
            for _ in range(rounds):
                for name, one in zip(
                    found, pool.map(lambda name: self.measure(name, scenario, rate), found), strict=True
                ):
                    found[name].append(one)
        return found

    def offline_rate(self, name: str) -> float:
        """About how many requests a second this server answers at most."""
        return float(self.measure(name, "Offline", 20_000.0)["rate"])

    def largest_valid_rate(self, name: str, most: float) -> float:
        """The largest rate at which LoadGen finds a Server run VALID; 0 if there is none."""
        valid, invalid = 0, _STEPS
        while invalid - valid > 1:
            step = (valid + invalid) // 2
            tried = (self.measure(name, "Server", most * step / _STEPS) for _ in range(_TRIES))
            if any(one["valid"] for one in tried):
                valid = step
            else:
                invalid = step
        return most * valid / _STEPS


def prepare(directory: Path) -> tuple[Path, Path]:
    """Return the bundle of the MLP, and a file with rows and the model's answers to them."""
    import numpy as np

    ((model, bundle),) = exported(directory, 1).values()
    rows = np.random.default_rng(0).random((_ROWS, *model.input_shape[1:])).round(4).astype("float32")
    np.savez(directory / "rows.npz", rows=rows, answers=model.predict(rows, verbose=0))
    return bundle, directory / "rows.npz"


def show(scenario: str, found: dict[str, list[Found]]) -> None:
    """Print a row for each server: medians, and the smallest and the largest in brackets."""
    for name, rounds in found.items():

        def cell(values: list[float], form: str) -> str:
            middle, least, most = statistics.median(values), min(values), max(values)
            return f"{middle:{form}} ({least:{form}} to {most:{form}})"

        valid = sum(one["valid"] for one in rounds)
        against = [one["p99"] / ours["p99"] for one, ours in zip(rounds, found[OWN], strict=True)]
        cells = [scenario, name, f"{valid} of {len(rounds)}"]
        cells += [cell([one["rate"] for one in rounds], ",.0f")]
        if scenario == "Offline":  # where a request waits for all before it
            cells += ["", "", ""]
        else:
            cells += [f"{statistics.median(one['p50'] for one in rounds):.2f} ms"]
            cells += [cell([one["p99"] for one in rounds], ".2f") + " ms", cell(against, ".2f") + "x"]
        cells += [cell([1e6 * one["cpu_s"] / one["requests"] for one in rounds], ",.0f") + " us"]
        print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    """All three scenarios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="the least duration of a run")
    parser.add_argument("--bound", type=float, default=15.0, metavar="MS")
    parser.add_argument("--peers", required=True, help="a Python that has LoadGen and Mosec")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        bundle, rows = prepare(Path(directory))
        mosec = [args.peers, str(HERE / "mosec_peer.py"), str(bundle / "saved_model"), "--port", "9112"]
        ways = {OWN: way_of_stoker(bundle, 9111), "Mosec": Way(mosec, 9112, "/inference")}
        print("| scenario | server | VALID | answers/s | p50 | p99 | p99 against stoker serve | CPU |")
        print("|---|---|---|---|---|---|---|---|")
        with LoadGen(ways, rows, args.peers, args.seconds, args.bound) as loadgen:
            show(
                "SingleStream", loadgen.measure_in_turn("SingleStream", dict.fromkeys(ways, 0.0), args.rounds)
            )
            # LoadGen asks as many as are expected in that time; it must not be done earlier.
            expected = {name: 1.5 * loadgen.offline_rate(name) for name in ways}
            offline = loadgen.measure_in_turn("Offline", expected, args.rounds)
            show("Offline", offline)
            most = statistics.median(one["rate"] for one in offline[OWN])
            rate = loadgen.largest_valid_rate(OWN, most)
            if rate:
                show("Server", loadgen.measure_in_turn("Server", dict.fromkeys(ways, rate), args.rounds))
            print(f"\nlargest VALID Server rate of Stoker: {rate:,.0f}/s; wrong answers: {loadgen.wrong}")


if __name__ == "__main__":
    main()
