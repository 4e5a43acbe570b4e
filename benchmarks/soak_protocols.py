"""100,000 requests over four protocols at once, while workers die and versions change: every answer is the right one.

    make soak-serve
    PYTHONPATH=. python benchmarks/soak_protocols.py --requests 20000 --seed 3

A client for each of TensorFlow Serving's and Open Inference's REST and gRPC. Every row holds a number of its own, which
the answer repeats beside the number of the version that computed it; where the protocol names the version, the two must
agree. One request in ten is hostile. Again and again a worker is killed and a new version renamed into place; the first
worker is left alone, to see whether its memory grows. A request lost with a worker is asked again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from benchmarks.soak_serve import anything, free_port, malformed, memory, request, shaken

HANGS_S = 600
FAULTS = (500, "INTERNAL", "UNKNOWN")


def export_versions(place: Path) -> list[Path]:
    """Two bundles that repeat a number; the first says 0 beside it, the second 1."""
    import keras

    import stoker

    found = []
    for parity in (0, 1):
        number = keras.Input((1,), name="number")
        outputs = {
            "echo": keras.layers.Rescaling(1.0)(number),
            "parity": keras.layers.Rescaling(0.0, offset=parity)(number),
        }
        stoker.export(keras.Model({"number": number}, outputs), place / str(parity))
        found.append(place / str(parity))
    return found


class WrongAnswerError(Exception):
    """An answer that is not the request's own."""


class Client(threading.Thread):
    """Asks over one protocol until all have asked enough; makes a new connection when one breaks."""

    name = ""

    def __init__(self, soak: Soak, seed: int) -> None:
        super().__init__(daemon=True)
        self.soak, self.chance = soak, random.Random(seed)
        self.statuses: Counter[int | str] = Counter()
        self.lost = self.asked = 0
        self.wrong = ""

    def run(self) -> None:
        for place in range(self.soak.requests // 4):
            while place * 4 >= self.soak.allowed:
                time.sleep(0.01)
            try:
                self._ask_one(place)
            except WrongAnswerError as error:
                self.wrong = str(error)
                return
            self.asked += 1

    def _ask_one(self, place: int) -> None:
        if self.chance.random() < 0.005:
            self.leave()  # so that every worker has clients
        rows = [float(place * 8 + row) for row in range(self.chance.choice([1, 1, 1, 2, 7]))]
        if self.chance.random() < 0.1:
            try:
                self.statuses[self.attack(rows)] += 1
            except OSError:
                self.statuses["hostile, left"] += 1
            return
        while True:
            try:
                echoes, parities, version = self.ask(rows)
            except ConnectionError:
                self.lost += 1
                time.sleep(0.05)
                continue
            if echoes != rows:
                raise WrongAnswerError(f"{self.name}: asked {rows}, answered {echoes}")
            if len(set(parities)) != 1 or (version and parities[0] != int(version) % 2):
                raise WrongAnswerError(f"{self.name}: version {version!r} answered {parities}")
            self.statuses["right"] += 1
            return

    def leave(self) -> None:
        """Close the connection; the next request makes another."""
        raise NotImplementedError

    def ask(self, rows: list[float]) -> tuple[list[float], list[float], str]:
        """The numbers that come back, those of the version, and its name; ConnectionError if the request is lost."""
        raise NotImplementedError

    def attack(self, rows: list[float]) -> int | str:
        """Send something hostile: the status of its answer."""
        raise NotImplementedError


class RestClient(Client):
    """Over one HTTP connection."""

    path = ""
    _connection: socket.socket | None = None

    def make(self, rows: list[float]) -> bytes:
        raise NotImplementedError

    def read(self, body: dict[str, Any]) -> tuple[list[float], list[float], str]:
        raise NotImplementedError

    def ask(self, rows: list[float]) -> tuple[list[float], list[float], str]:
        try:
            if self._connection is None:
                self._connection = socket.create_connection(("127.0.0.1", self.soak.port), HANGS_S)
            self._connection.sendall(request(self.path, self.make(rows)))
            status, body = _read_answer(self._connection)
        except OSError as error:
            self.leave()
            raise ConnectionError from error
        if status != 200:
            raise WrongAnswerError(f"{self.name}: {status} {body[:200]!r}")
        return self.read(json.loads(body))

    def leave(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def attack(self, rows: list[float]) -> int | str:
        kind = self.chance.randrange(3)
        if kind == 0:
            return malformed(self.chance, self.soak.port)
        path, body = (self.path, shaken(self.make(rows), self.chance)) if kind == 1 else anything(self.chance)
        with socket.create_connection(("127.0.0.1", self.soak.port), HANGS_S) as alone:
            alone.sendall(request(path, body))
            return _read_answer(alone)[0]


def _read_answer(connection: socket.socket) -> tuple[int, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _receive(connection)
    head, _, rest = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    while length and len(rest) < int(length[1]):
        rest += _receive(connection)
    return int(head[9:12]), rest


def _receive(connection: socket.socket) -> bytes:
    part = connection.recv(65536)
    if not part:
        raise ConnectionError
    return part


class ServingRest(RestClient):
    """TensorFlow Serving's REST API."""

    name, path = "TensorFlow Serving, REST", "/v1/models/model:predict"

    def make(self, rows: list[float]) -> bytes:
        return json.dumps({"instances": [{"number": [one]} for one in rows]}).encode()

    def read(self, body: dict[str, Any]) -> tuple[list[float], list[float], str]:
        found = body["predictions"]
        return [one["echo"][0] for one in found], [one["parity"][0] for one in found], ""


class InferenceRest(RestClient):
    """The Open Inference Protocol over HTTP."""

    name, path = "Open Inference, REST", "/v2/models/model/infer"

    def make(self, rows: list[float]) -> bytes:
        tensor = {"name": "number", "datatype": "FP32", "shape": [len(rows), 1], "data": rows}
        return json.dumps({"inputs": [tensor]}).encode()

    def read(self, body: dict[str, Any]) -> tuple[list[float], list[float], str]:
        found = {one["name"]: one["data"] for one in body["outputs"]}
        return found["echo"], found["parity"], body["model_version"]


class GrpcClient(Client):
    """Over one gRPC channel."""

    method = ""
    _channel: Any = None

    def make(self, rows: list[float]) -> bytes:
        raise NotImplementedError

    def read(self, data: bytes) -> tuple[list[float], list[float], str]:
        raise NotImplementedError

    def _call(self, data: bytes) -> bytes:
        import grpc

        if self._channel is None:
            options = [("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100)]
            options += [("grpc.max_reconnect_backoff_ms", 500)]
            self._channel = grpc.insecure_channel(f"127.0.0.1:{self.soak.grpc_port}", options)
        found: bytes = self._channel.unary_unary(self.method)(data, timeout=HANGS_S, wait_for_ready=True)
        return found

    def ask(self, rows: list[float]) -> tuple[list[float], list[float], str]:
        import grpc

        try:
            found = self._call(self.make(rows))
        except grpc.RpcError as error:
            if error.code() == grpc.StatusCode.UNAVAILABLE:
                raise ConnectionError from error
            raise WrongAnswerError(f"{self.name}: {error.code()} {error.details()}") from error
        return self.read(found)

    def leave(self) -> None:
        if self._channel is not None:
            self._channel.close()
        self._channel = None

    def attack(self, rows: list[float]) -> int | str:
        import grpc

        if self.chance.random() < 0.3:
            with socket.create_connection(("127.0.0.1", self.soak.grpc_port), HANGS_S) as alone:
                preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                alone.sendall(self.chance.choice([b"", preface]) + self.chance.randbytes(200))
            return "no call"
        try:
            self._call(shaken(self.make(rows), self.chance))
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"


class ServingGrpc(GrpcClient):
    """TensorFlow Serving's PredictionService."""

    name, method = "TensorFlow Serving, gRPC", "/tensorflow.serving.PredictionService/Predict"

    def make(self, rows: list[float]) -> bytes:
        import tensorflow as tf
        from tensorflow_serving.apis.predict_pb2 import PredictRequest

        made = PredictRequest()
        made.model_spec.name = "model"
        made.inputs["number"].CopyFrom(tf.make_tensor_proto([[one] for one in rows], tf.float32))
        return bytes(made.SerializeToString())

    def read(self, data: bytes) -> tuple[list[float], list[float], str]:
        import tensorflow as tf
        from tensorflow_serving.apis.predict_pb2 import PredictResponse

        found = PredictResponse.FromString(data)
        echo, parity = (tf.make_ndarray(found.outputs[name]).ravel().tolist() for name in ("echo", "parity"))
        return echo, parity, str(found.model_spec.version.value)


class InferenceGrpc(GrpcClient):
    """The Open Inference Protocol over gRPC; raw and typed contents in turn."""

    name, method = "Open Inference, gRPC", "/inference.GRPCInferenceService/ModelInfer"

    def make(self, rows: list[float]) -> bytes:
        import numpy as np
        from tritonclient.grpc.service_pb2 import ModelInferRequest

        made = ModelInferRequest(model_name="model")
        tensor = made.inputs.add(name="number", datatype="FP32", shape=[len(rows), 1])
        if self.chance.random() < 0.5:
            made.raw_input_contents.append(np.array(rows, "<f4").tobytes())
        else:
            tensor.contents.fp32_contents.extend(rows)
        return bytes(made.SerializeToString())

    def read(self, data: bytes) -> tuple[list[float], list[float], str]:
        import numpy as np
        from tritonclient.grpc.service_pb2 import ModelInferResponse

        made = ModelInferResponse.FromString(data)
        raw = [np.frombuffer(one, "<f4").tolist() for one in made.raw_output_contents]
        typed = [list(one.contents.fp32_contents) for one in made.outputs]
        found = dict(zip((one.name for one in made.outputs), raw or typed, strict=True))
        return found["echo"], found["parity"], made.model_version


class Soak:
    """A server with two workers, its clients, and what happens to it."""

    def __init__(self, requests: int, seed: int, events: int, directory: Path) -> None:
        self.requests, self.seed, self.events, self.directory = requests, seed, events, directory
        self.bundles = export_versions(directory / "bundles")
        self.versions = directory / "versions"
        self.versions.mkdir()
        self.newest = self.killed = self.allowed = 0
        self.lines: list[str] = []
        self.change_version()
        self.grpc_port = free_port()
        command = [
            sys.executable,
            "-m",
            "stoker",
            "serve",
            str(self.versions),
            "--port",
            "0",
            "--workers",
            "2",
        ]
        environment = {**os.environ, "STOKER_STORE": "off"}
        self.server = subprocess.Popen(
            [*command, "--grpc-port", str(self.grpc_port)], stderr=subprocess.PIPE, text=True, env=environment
        )
        threading.Thread(target=self._read_lines, daemon=True).start()
        self.wait_until(lambda: self.count_lines("ready") == 2)
        self.port = int(re.findall(r":(\d+)$", self.lines[0])[0])

    def _read_lines(self) -> None:
        assert self.server.stderr is not None
        for line in self.server.stderr:
            self.lines.append(line.rstrip())

    def count_lines(self, words: str) -> int:
        """How many lines have these words."""
        return sum(words in line for line in list(self.lines))

    def wait_until(self, holds: Any) -> None:
        """Wait for something that must come."""
        end = time.monotonic() + HANGS_S
        while not holds():
            if time.monotonic() > end or self.server.poll() is not None:
                raise SystemExit("\n".join(["it hangs, or the server ended", *self.lines[-20:]]))
            time.sleep(0.05)

    def workers(self) -> list[int]:
        """The workers, the oldest first: the numbers of processes may begin anew, so their start times decide."""
        text = Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read_text()
        return sorted(map(int, text.split()), key=_start_time)

    def change_version(self) -> None:
        """Rename a new version into place; of the old ones the last two stay."""
        self.newest += 1
        made = self.directory / f"next-{self.newest}"
        shutil.copytree(self.bundles[self.newest % 2], made)
        made.rename(self.versions / str(self.newest))
        old = self.versions / str(self.newest - 3)
        if old.is_dir():
            shutil.rmtree(old)

    def kill_worker(self) -> None:
        """Kill the youngest worker."""
        os.kill(self.workers()[-1], signal.SIGKILL)
        self.killed += 1

    def run(self) -> bool:
        """Ask all; whether all went well."""
        kinds = (ServingRest, InferenceRest, ServingGrpc, InferenceGrpc)
        clients = [kind(self, self.seed * 4 + place) for place, kind in enumerate(kinds)]
        first = self.workers()[0]
        for client in clients:
            client.start()
        asked = lambda: sum(client.asked for client in clients)  # noqa: E731 - read again and again
        before = 0.0
        share = self.requests // (2 * self.events)
        for event in range(1, 2 * self.events):
            # They have enough to do for something to happen under them, and wait if the server needs longer than that.
            self.wait_until(lambda: self.count_lines("ready") == 2 + self.killed)
            self.allowed = share * (event + 1)
            self.wait_until(lambda: asked() >= share * event or any(one.wrong for one in clients))  # noqa: B023
            if event * 5 >= 2 * self.events and not before:
                before = memory(first)
            if event % 2:
                self.kill_worker()
            else:
                self.change_version()
        self.allowed = self.requests
        for client in clients:
            client.join()
        after = memory(first)
        return self.tell(clients, before, after)

    def tell(self, clients: list[Any], before: float, after: float) -> bool:
        """Print what happened; whether it is as it should be."""
        for client in clients:
            told = {str(status): client.statuses[status] for status in sorted(client.statuses, key=str)}
            print(f"{client.name}: {told}, {client.lost} lost with a worker and asked again {client.wrong}")
        print(f"{self.killed} workers killed, {self.newest} versions")
        print(
            f"memory of the first worker from a fifth of the way to the end: {before:.1f} to {after:.1f} MiB"
        )
        faults = sum(client.statuses[one] for client in clients for one in FAULTS)
        lost = all(client.lost <= self.killed for client in clients)
        return not faults and lost and not any(one.wrong for one in clients) and after - before < 20


def _start_time(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19])


def main() -> None:
    """Ask, kill, reload, look at the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--events", type=int, default=20, help="kills, and new versions (20)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        soak = Soak(args.requests, args.seed, args.events, Path(directory))
        try:
            well = soak.run()
        finally:
            soak.server.terminate()
        if soak.server.wait() or not well:
            sys.exit(
                "\n".join(
                    [*soak.lines[-20:], f"it failed; the server's exit code is {soak.server.returncode}"]
                )
            )


if __name__ == "__main__":
    main()
