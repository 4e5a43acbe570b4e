"""100,000 requests of all kinds, right and wrong, to one server: no 500, nothing lost, no memory that grows.

    make soak-serve
    python benchmarks/soak_serve.py --requests 20000 --seed 3

Most go over one connection: right ones, some changed at random (bytes replaced, cut, doubled, other values), and
anything. Every tenth is HTTP that is none, on a connection of its own; every tenth goes to the gRPC service, right,
changed, or as bytes that are no HTTP/2.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
PREDICT, INFER = "/v1/models/model:predict", "/v2/models/model/infer"


def exported(path: Path) -> None:
    """Numbers and a word, to a label."""
    import keras

    import stoker

    numbers = keras.Input((4,), name="numbers")
    word = keras.Input((), name="word", dtype="string")
    ids = keras.layers.StringLookup(vocabulary=["a", "b", "c"])(word)
    x = keras.layers.Concatenate()([numbers, keras.layers.CategoryEncoding(4, "one_hot")(ids)])
    model = keras.Model({"numbers": numbers, "word": word}, keras.layers.Dense(3, activation="softmax")(x))
    stoker.export(model, path, labels=["cat", "dog", "eel"])


def right(chance: random.Random) -> tuple[str, bytes]:
    rows = [
        {"numbers": [chance.random() for _ in range(4)], "word": chance.choice("abcd")}
        for _ in range(chance.choice([1, 1, 1, 2, 7]))
    ]
    if chance.random() < 0.6:
        return PREDICT, json.dumps({"instances": rows}).encode()
    numbers = [value for row in rows for value in row["numbers"]]  # type: ignore[attr-defined]
    inputs = [
        {"name": "numbers", "datatype": "FP32", "shape": [len(rows), 4], "data": numbers},
        {"name": "word", "datatype": "BYTES", "shape": [len(rows)], "data": [row["word"] for row in rows]},
    ]
    return INFER, json.dumps({"inputs": inputs}).encode()


def changed(chance: random.Random) -> tuple[str, bytes]:
    path, body = right(chance)
    return path, shaken(body, chance)


def shaken(data: bytes, chance: random.Random) -> bytes:
    """With a few changes."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not made:
            break
        place = chance.randrange(len(made))
        kind = chance.randrange(4)
        if kind == 0:
            made[place] = chance.randrange(256)
        elif kind == 1:
            del made[place : place + chance.randint(1, 9)]
        elif kind == 2:
            made[place:place] = made[place : place + 20]
        else:
            made[place:place] = chance.choice(
                [b"null", b"[", b"{}", b"1e999", b'"x"', b"-", b"true", b"[[]]", b"\r\n", b"\0"]
            )
    return bytes(made)


def anything(chance: random.Random) -> tuple[str, bytes]:
    paths = [
        PREDICT, INFER, "/v1/models/model:classify", "/v1/models/model:regress", "/v1/models/x:predict", "/",
        "/metrics", "/v1/models/model/metadata", "/v2/models/model", "/readyz", "/%00", "/v2/" + "x" * 300,
        "/try/model",
    ]  # fmt: skip
    return chance.choice(paths), chance.randbytes(chance.choice([0, 1, 20, 2000]))


def request(path: str, body: bytes) -> bytes:
    method = "GET" if not body else "POST"
    return (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
    )


def answer(connection: socket.socket) -> int:
    """The status of one answer, read to its end."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError
        data += part
    head, _, rest = data.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    wanted = int(length[1]) if length else 0
    while len(rest) < wanted:
        rest += connection.recv(65536)
    return int(head[9:12])


def malformed(chance: random.Random, port: int) -> int:
    """HTTP with a broken head, alone on a connection: its status, 0 if the server just closed or waits for more."""
    with socket.create_connection(("127.0.0.1", port)) as alone:
        alone.sendall(shaken(request(*right(chance))[:400], chance))
        alone.shutdown(socket.SHUT_WR)
        try:
            return answer(alone)
        except OSError:
            return 0


def over_grpc(chance: random.Random, channel: Any, port: int) -> str:
    """A call, right or changed: the name of its status; sometimes bytes to its port that are no call at all."""
    import grpc

    if chance.random() < 0.05:
        with socket.create_connection(("127.0.0.1", port)) as alone:
            preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            alone.sendall(chance.choice([b"", preface]) + chance.randbytes(200))
        return "no call"
    name = chance.choice(["Predict", "Classify", "Regress", "MultiInference", "GetModelMetadata"])
    data = predict_message(chance)
    call = channel.unary_unary(f"/tensorflow.serving.PredictionService/{name}")
    try:
        call(shaken(data, chance) if chance.random() < 0.7 else data, timeout=600)
    except grpc.RpcError as error:
        return str(error.code().name)
    return "OK"


def predict_message(chance: random.Random) -> bytes:
    """A PredictRequest for one row."""
    import tensorflow as tf

    from stoker.serve.grpc.messages import serving_message

    made = serving_message("PredictRequest")
    made.model_spec.name = "model"
    numbers = [[chance.random() for _ in range(4)]]
    for field, value in (
        ("numbers", tf.make_tensor_proto(numbers, tf.float32)),
        ("word", tf.make_tensor_proto(["a"])),
    ):
        made.inputs[field].MergeFromString(value.SerializeToString())
    return bytes(made.SerializeToString())


def memory(process: int) -> float:
    text = Path(f"/proc/{process}/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def main() -> None:
    """Ask, count, look at the memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    chance = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as directory:
        exported(Path(directory) / "bundle")
        grpc_port = free_port()
        command = [sys.executable, "-m", "stoker", "serve", f"{directory}/bundle", "--port", "0", "--ledger"]
        command += ["--grpc-port", str(grpc_port)]
        environment = {**os.environ, "STOKER_STORE": f"sqlite:///{directory}/stoker.db"}
        server = subprocess.Popen(
            [*command, "--record", "0.01"], stderr=subprocess.PIPE, text=True, env=environment, cwd=directory
        )
        assert server.stderr is not None
        port = int(re.findall(r":(\d+)$", server.stderr.readline())[0])
        for line in server.stderr:
            if "ready" in line:
                break
        try:
            ok = asked(args.requests, chance, (port, grpc_port), server)
        finally:
            server.terminate()
            told = server.stderr.read()
        print("\n".join(line for line in told.splitlines() if "Traceback" in line or "us each" in line))
        if server.wait() or not ok:
            sys.exit("it failed")


def asked(
    requests: int, chance: random.Random, ports: tuple[int, int], server: subprocess.Popen[str]
) -> bool:
    import grpc

    statuses: Counter[int | str] = Counter()
    lost, before = 0, 0.0
    port, grpc_port = ports
    connection = socket.create_connection(("127.0.0.1", port))
    with grpc.insecure_channel(f"127.0.0.1:{grpc_port}") as channel:
        for number in range(requests):
            if number == requests // 10:
                before = memory(server.pid)
            if number % 10 == 8:
                statuses[malformed(chance, port)] += 1
                continue
            if number % 10 == 9:
                statuses[f"gRPC {over_grpc(chance, channel, grpc_port)}"] += 1
                continue
            path, body = chance.choice([right, changed, anything])(chance)
            try:
                connection.sendall(request(path, body))
                statuses[answer(connection)] += 1
            except OSError:
                lost += 1
                connection.close()
                connection = socket.create_connection(("127.0.0.1", port))
    after = memory(server.pid)
    told = {str(status): statuses[status] for status in sorted(statuses, key=str)}
    print(f"{requests:,} requests: {told}, {lost} connections lost")
    print(f"memory from the first tenth to the end: {before:.1f} to {after:.1f} MiB")
    faults = sum(statuses[one] for one in (500, "gRPC INTERNAL", "gRPC UNKNOWN", "gRPC UNAVAILABLE"))
    return faults == 0 and lost == 0 and after - before < 20


if __name__ == "__main__":
    main()
