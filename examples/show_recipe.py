"""What `make demo` ends with: a table becomes a trained, compared and exported model, which is asked over HTTP."""

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from sklearn.datasets import load_wine

QUESTIONS = (0, 70, 150)


def write_table(path: Path) -> list[dict]:
    """Scikit-learn's wines as a CSV file, with the cultivar by name; a few rows to ask about later."""
    wines = load_wine()
    names = [name.replace("/", "_") for name in wines.feature_names]
    rows = [
        dict(zip(names, values.tolist())) | {"cultivar": str(wines.target_names[kind])}
        for values, kind in zip(wines.data, wines.target)
    ]
    lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [rows[number] for number in QUESTIONS]


def serve(directory: str) -> tuple[subprocess.Popen, str]:
    """`stoker serve` on a free port, and its address."""
    words = ["serve", "runs/latest/bundle", "--port", "0"]
    print(f"\n$ stoker {' '.join(words[:2])}", flush=True)
    command = [sys.executable, "-m", "stoker", *words]
    server = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        print(line, end="", flush=True)
        if found := re.search(r"http://\S+", line):
            return server, found[0]
    raise SystemExit("the server did not start")


def ask(address: str, row: dict) -> dict:
    """One row over TensorFlow Serving's REST API."""
    body = json.dumps({"instances": [row]}).encode()
    with urllib.request.urlopen(f"{address}/v1/models/model:predict", body, timeout=60) as answer:
        return json.load(answer)["predictions"][0]


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        questions = write_table(Path(directory, "wines.csv"))
        words = ["train", "table", "wines.csv", "--target", "cultivar"]
        print(f"\n$ stoker {' '.join(words)}", flush=True)
        subprocess.run([sys.executable, "-m", "stoker", *words], cwd=directory, check=True)
        server, address = serve(directory)
        try:
            for row in questions:
                truth = row.pop("cultivar")
                print(
                    f"a wine with {row['alcohol']} % of alcohol: {ask(address, row)['label']} (it is {truth})"
                )
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
