"""What docs/recipes.md says of every run, seen: the bundle answers raw rows over REST, the ejected program is equal."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

_ROWS = 64


def served_alike(result: dict[str, Any]) -> str:
    """Ask `stoker serve` about the raw test rows: whether the answers are worth what the report says."""
    from stoker.recipes.scores import contest

    features, test = test_rows(result)
    rows = raw_rows(test.inputs, features)
    with serving(result["bundle"]) as address:
        answers = [one for some in _parts(rows) for one in ask(address, some)]
    classes = result["classes"]
    network = result["contenders"][0]["scores"]
    # A single output comes without its name.
    given = np.array([one["scores"] if classes else one[0] for one in answers])
    found = contest(
        test.labels,
        {"network": given},
        classes=len(classes or ()),
        balanced=result["settings"]["balanced"],
        resamples=0,
    )[0].scores
    apart = [
        name
        for name, score in network.items()
        if abs(found[name].value - score["value"]) > 1e-4 * max(1.0, abs(score["value"]))
    ]
    return f"other {', '.join(apart)}" if apart else "yes"


def test_rows(result: dict[str, Any]) -> tuple[Any, Any]:
    """What the columns are, and the rows that the figures are from: divided again, as the program divides them."""
    from stoker import recipes

    program = importlib.import_module(f"stoker.recipes.programs.{result['recipe']}")
    given = {key: tuple(one) if isinstance(one, list) else one for key, one in result["settings"].items()}
    train, *_, test = program.read(program.Settings(**given))
    return train.features, recipes.rows_of(test)


def raw_rows(inputs: Any, features: Any) -> list[Any]:
    """As the file has them: words for categories, nothing for what is missing; texts; pixels."""
    if not isinstance(inputs, dict):
        return [one.decode() if isinstance(one, bytes) else one.tolist() for one in inputs]
    columns = {
        name: [_raw(value, features[name].vocabulary) for value in column.tolist()]
        for name, column in inputs.items()
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _raw(value: Any, vocabulary: Any) -> Any:
    if vocabulary:
        return vocabulary[value] if value else ""
    if isinstance(value, float) and value != value:
        return None
    return value.decode() if isinstance(value, bytes) else value


def _parts(rows: list[Any]) -> Iterator[list[Any]]:
    for first in range(0, len(rows), _ROWS):
        yield rows[first : first + _ROWS]


@contextmanager
def serving(bundle: str) -> Iterator[str]:
    """`stoker serve` on a free port; its address."""
    command = [sys.executable, "-m", "stoker", "serve", bundle, "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        said = []
        assert server.stderr is not None
        for line in server.stderr:
            said.append(line)
            if found := re.search(r"http://\S+", line):
                break
        else:
            raise SystemExit("stoker serve ended: " + "".join(said))
        yield found[0]
    finally:
        server.terminate()
        server.communicate()


def ask(address: str, rows: list[Any]) -> list[Any]:
    """Some rows over TensorFlow Serving's REST API."""
    body = json.dumps({"instances": rows}).encode()
    with urllib.request.urlopen(f"{address}/v1/models/model:predict", body) as answer:
        found: list[Any] = json.load(answer)["predictions"]
    return found


def ejected_alike(words: list[str], run: Path) -> str:
    """Eject the program of a run and let it train by itself: whether every weight has the same bits."""
    program = run.parent.parent / f"{run.name}_ejected.py"
    eject = [sys.executable, "-m", "stoker", "train", *words, "--runs", str(run.parent)]
    subprocess.run([*eject, "--eject", str(program), "--force"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        [sys.executable, str(program)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    ours, theirs = weights(run), weights(run.parent / program.stem)
    differ = sum(one != other for one, other in zip(ours, theirs, strict=True))
    return f"{differ} of {len(ours)} weights differ" if differ else "yes"


def weights(run: Path) -> list[bytes]:
    """The bytes of every weight of a run's model."""
    import keras

    model = keras.models.load_model(run / "bundle" / "model.keras")
    return [one.tobytes() for one in model.get_weights()]
