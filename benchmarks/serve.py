"""Answers of a bundle: one row in the process, many rows offline, requests over HTTP, each against the usual ways.

    make bench-serve
    make bench-serve ONLY=loads OPTIONS="--rounds 3 --seconds 2"      # rows, offline, http, overload or loads

Rounds are interleaved, so that whatever else the machine does hits all ways alike. CPU time is that of the process that
answers, with all its threads and children; the client is a process of its own.
"""

from __future__ import annotations

import argparse
import importlib.util
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

from serve_client import client

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

HERE = Path(__file__).parent / "programs" / "serve"
Way = Callable[[], Any]
CLIENT = Path(__file__).parent / "serve_client.py"


def models() -> dict[str, Any]:
    """The MLP and the CNN of the table."""
    import keras
    from keras import layers

    mlp = [
        keras.Input((100,)),
        *(layers.Dense(128, activation="relu") for _ in range(2)),
        layers.Dense(10, activation="softmax"),
    ]
    cnn = [
        keras.Input((32, 32, 3)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(32, 3, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(10, activation="softmax"),
    ]
    return {"MLP 100-128-128-10": keras.Sequential(mlp), "CNN 32x32x3": keras.Sequential(cnn)}


def exported(directory: Path, count: int) -> dict[str, tuple[Any, Path]]:
    """The first models, each with its bundle."""
    import stoker

    found = {}
    for number, (name, model) in enumerate(list(models().items())[:count]):
        found[name] = (model, directory / str(number))
        stoker.export(model, directory / str(number), engines=engines())
    return found


def engines() -> list[str]:
    """Those beside TensorFlow that are installed."""
    needs = {"litert": ["ai_edge_litert"], "onnx": ["onnxruntime", "tf2onnx"]}
    return [name for name, modules in needs.items() if all(map(importlib.util.find_spec, modules))]


def interleaved(ways: dict[str, tuple[Way, int]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds a call of each way, for every round."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for way, _ in ways.values():
        way()
    for _ in range(rounds):
        for name, (way, calls) in ways.items():
            started = time.process_time()
            for _ in range(calls):
                way()
            found[name].append((time.process_time() - started) / calls)
    return found


def table(case: str, found: dict[str, list[float]], own: str, unit: float, what: str) -> None:
    """A row for each way: what it took, and how much more than ours."""
    for name, times in found.items():
        ratios = sorted(one / ours for one, ours in zip(times, found[own], strict=True))
        middle = statistics.median(times) * unit
        print(
            f"| {case} | {name} | {middle:,.4g} {what} | {statistics.median(ratios):.2f}x "
            f"({ratios[0]:.2f} to {ratios[-1]:.2f}) |"
        )


def single_rows(bundles: dict[str, tuple[Any, Path]], rounds: int) -> None:
    """One row at a time, in this process."""
    import numpy as np
    import tensorflow as tf

    import stoker

    print("\n| model | one row, in process | CPU | CPU against Predictor |\n|---|---|---|---|")
    for name, (model, path) in bundles.items():
        row = np.random.default_rng(0).random((1, *model.input_shape[1:])).astype("float32")
        predictor = stoker.Predictor(path)
        saved = tf.saved_model.load(str(path / "saved_model"))
        function = saved.signatures["serving_default"]
        ways: dict[str, tuple[Way, int]] = {
            "model.predict": (lambda m=model, r=row: m.predict(r, verbose=0), 10),
            "model.predict_on_batch": (lambda m=model, r=row: m.predict_on_batch(r), 200),
            "stoker.predict": (lambda m=model, r=row: stoker.predict(m, r, verbose=0), 200),
            "the SavedModel's function": (
                lambda f=function, r=row: f(input=tf.constant(r))["output"].numpy(),
                200,
            ),
        }
        for engine in ("session", *engines()):
            one = stoker.Predictor(path, engine=engine)
            ways[f"Predictor ({engine})"] = (lambda p=one, r=row: p.predict(r), 200)
        chosen = f"Predictor, as it chooses ({predictor.engine.name})"
        ways[chosen] = (lambda p=predictor, r=row: p.predict(r), 200)
        table(name, interleaved(ways, rounds), list(ways)[-1], 1e6, "us")


def offline(bundles: dict[str, tuple[Any, Path]], rounds: int, rows: int) -> None:
    """Many rows at once, in this process."""
    import numpy as np

    import stoker

    model, path = next(iter(bundles.values()))
    given = np.random.default_rng(0).random((rows, 100), dtype="float32")
    predictor = stoker.Predictor(path)
    few = given[: rows // 10]
    ways: dict[str, tuple[Way, int]] = {
        "model.predict (a tenth of the rows, times ten)": (lambda: model.predict(few, verbose=0), 1),
        "model.predict, batch_size=1024": (lambda: model.predict(given, batch_size=1024, verbose=0), 1),
        "stoker.predict": (lambda: stoker.predict(model, given, verbose=0), 1),
        "stoker.predict, batch_size=1024": (
            lambda: stoker.predict(model, given, batch_size=1024, verbose=0),
            1,
        ),
        "Predictor": (lambda: predictor.predict(given), 1),
    }
    print(f"\n| model | {rows:,} rows offline | CPU | CPU against Predictor |\n|---|---|---|---|")
    found = interleaved(ways, rounds)
    first = next(iter(ways))
    found[first] = [10 * one for one in found[first]]
    table("MLP 100-128-128-10", found, "Predictor", 1, "s")


def cpu_of(process: int) -> float:
    """CPU seconds of a process and all below it."""
    total = 0.0
    ticks = os.sysconf("SC_CLK_TCK")
    waiting = [process]
    while waiting:
        one = waiting.pop()
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            for thread in Path(f"/proc/{one}/task").iterdir():
                waiting += [int(word) for word in (thread / "children").read_text().split()]
        except FileNotFoundError:
            continue
        total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def in_a_process(
    port: int, path: str, clients: float, seconds: float, kind: str = "--client"
) -> dict[str, Any]:
    """The client, where it takes no time of anything else."""
    command = [sys.executable, str(CLIENT), kind, str(port), path, str(clients), str(seconds)]
    found: dict[str, Any] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return found


def started(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def wait_for(port: int, path: str, server: subprocess.Popen[bytes]) -> bool:
    """Until it answers; False if it ended instead."""
    for _ in range(600):
        if server.poll() is not None:
            return False
        try:
            if client(port, path, 1, 0.5)["requests"]:
                return True
        except OSError:
            pass
        time.sleep(0.2)
    return False


def over_http(bundles: dict[str, tuple[Any, Path]], rounds: int, peers: str | None, seconds: float) -> None:
    """Requests of one row, from one client and from many."""
    path = next(iter(bundles.values()))[1]
    saved = str(path / "saved_model")
    ways = {
        "stoker serve": (
            [sys.executable, "-m", "stoker", "serve", str(path), "--port", "9101"],
            9101,
            "/v1/models/model:predict",
        ),
        "pinned function, no batcher": ([sys.executable, str(HERE / "bare.py"), saved, "9102"], 9102, "/"),
    }
    if peers:
        ways["LitServe"] = ([peers, str(HERE / "litserve_peer.py"), saved, "9103"], 9103, "/predict")
        ways["Mosec"] = ([peers, str(HERE / "mosec_peer.py"), saved, "--port", "9104"], 9104, "/inference")
    servers = {name: started(command) for name, (command, _, _) in ways.items()}
    try:
        alive = {name: wait_for(ways[name][1], ways[name][2], server) for name, server in servers.items()}
        print("\n| clients | server | requests/s | CPU a request | p50 | p99 | CPU against stoker serve |")
        print("|---|---|---|---|---|---|---|")
        for clients in (1, 16, 64):
            found: dict[str, list[tuple[float, float, float, float]]] = {
                name: [] for name in ways if alive[name]
            }
            for _ in range(rounds):
                for name in found:
                    found[name].append(
                        _measured(servers[name].pid, ways[name][1], ways[name][2], clients, seconds)
                    )
            _show(clients, found)
        for name in ways:
            if not alive[name]:
                print(f"| | {name} | did not start | | | | |")
    finally:
        for server in servers.values():
            if server.poll() is None:
                os.killpg(server.pid, 9)
            server.wait()


def _measured(
    process: int, port: int, path: str, clients: int, seconds: float
) -> tuple[float, float, float, float]:
    before = cpu_of(process)
    done = in_a_process(port, path, clients, seconds)
    used = cpu_of(process) - before
    times = done["times"]
    return (
        done["requests"] / seconds,
        used / max(1, done["requests"]),
        times[len(times) // 2],
        times[int(len(times) * 0.99)],
    )


def _show(clients: int, found: dict[str, list[tuple[float, float, float, float]]]) -> None:
    ours = found["stoker serve"]
    for name, rounds in found.items():
        rate, cpu, middle, late = (statistics.median(column) for column in zip(*rounds, strict=True))
        ratios = sorted(one[1] / other[1] for one, other in zip(rounds, ours, strict=True))
        print(
            f"| {clients} | {name} | {rate:,.0f} | {1e6 * cpu:,.0f} us | {1e3 * middle:.1f} ms | {1e3 * late:.1f} ms | "
            f"{statistics.median(ratios):.2f}x ({ratios[0]:.2f} to {ratios[-1]:.2f}) |"
        )


def overload(bundles: dict[str, tuple[Any, Path]], rounds: int, seconds: float) -> None:
    """A short line, and three times as many clients as fit into it."""
    path = next(iter(bundles.values()))[1]
    command = [sys.executable, "-m", "stoker", "serve", str(path), "--port", "9105", "--queue", "32"]
    server, place = started(command), "/v1/models/model:predict"
    try:
        if not wait_for(9105, place, server):
            print("\nstoker serve did not start")
            return
        print(
            "\n| clients, --queue 32 | answered/s | p50 | refused/s | p50 of a refusal |\n|---|---|---|---|---|"
        )
        for clients in (32, 192):
            done = [in_a_process(9105, place, clients, seconds) for _ in range(rounds)]
            columns = []
            for what in ("times", "refused"):
                rate = statistics.median(len(one[what]) / seconds for one in done)
                middle = statistics.median(
                    [one[what][len(one[what]) // 2] for one in done if one[what]] or [0.0]
                )
                columns += [f"{rate:,.0f}", f"{1e3 * middle:.1f} ms" if rate else ""]
            print(f"| {clients} | {' | '.join(columns)} |")
    finally:
        os.killpg(server.pid, 9)
        server.wait()


def loads(bundles: dict[str, tuple[Any, Path]], rounds: int, seconds: float) -> None:
    """What the server can hold, and how long answers take at parts and multiples of it."""
    path = next(iter(bundles.values()))[1]
    command = [sys.executable, "-m", "stoker", "serve", str(path), "--port", "9106", "--queue", "128"]
    server, place = started(command), "/v1/models/model:predict"
    try:
        if not wait_for(9106, place, server):
            print("\nstoker serve did not start")
            return
        most = statistics.median(
            in_a_process(9106, place, 64, seconds)["requests"] / seconds for _ in range(rounds)
        )
        print(
            f"\n64 clients that ask on: {most:,.0f} requests/s. Requests that come by chance, --queue 128:\n"
        )
        print(
            "| load | asked/s | answered/s | p50 | p99 | refused/s | p50 of a refusal |\n|---|---|---|---|---|---|---|"
        )
        for share in (0.5, 0.9, 3.0):
            done = [in_a_process(9106, place, share * most, seconds, "--rate") for _ in range(rounds)]
            answered = statistics.median(one["requests"] / seconds for one in done)
            refused = statistics.median(len(one["refused"]) / seconds for one in done)
            cells = [f"{share:.0%}", f"{share * most:,.0f}", f"{answered:,.0f}"]
            cells += [
                f"{1e3 * statistics.median(_part(one['times'], at) for one in done):.1f} ms"
                for at in (0.5, 0.99)
            ]
            late = statistics.median(_part(one["refused"], 0.5) for one in done)
            print(f"| {' | '.join(cells)} | {refused:,.0f} | {f'{1e3 * late:.1f} ms' if refused else ''} |")
    finally:
        os.killpg(server.pid, 9)
        server.wait()


def _part(times: list[float], share: float) -> float:
    return times[int(share * len(times))] if times else 0.0


def main() -> None:
    """All of it, or a part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", choices=["rows", "offline", "http", "overload", "loads"])
    parser.add_argument("--peers", help="a Python that has LitServe and Mosec beside TensorFlow")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        every = args.only in (None, "rows")
        bundles = exported(Path(directory), len(models()) if every else 1)
        if every:
            single_rows(bundles, args.rounds)
        if args.only in (None, "offline"):
            offline(bundles, min(args.rounds, 3), args.rows)
        if args.only in (None, "http"):
            over_http(bundles, args.rounds, args.peers, args.seconds)
        if args.only in (None, "overload"):
            overload(bundles, args.rounds, args.seconds)
        if args.only in (None, "loads"):
            loads(bundles, args.rounds, args.seconds)


if __name__ == "__main__":
    main()
