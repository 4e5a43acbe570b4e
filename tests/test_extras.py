"""Without the packages of the extras, every public name works or names the extra it needs, in one line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import HANGS_S

pytestmark = pytest.mark.tensorflow

# As in an environment made by `pip install "stoker[cpu]"`.
PROGRAM = r"""
import json, os, sys, warnings
warnings.simplefilter("ignore")
for name in ("pyarrow", "pandas", "sklearn", "uvicorn", "orjson", "grpc", "starlette", "psycopg", "PIL", "polars",
             "cryptography", "onnx", "onnxruntime", "tf2onnx", "ai_edge_litert", "sqlalchemy", "alembic"):
    sys.modules[name] = None
import keras, numpy as np
import stoker, stoker.data, stoker.recipes
from stoker.cli import main
from stoker.errors import StokerError

found = {}

def attempt(name, call):
    try:
        call()
        found[name] = "works"
    except StokerError as error:
        found[name] = f"says: {error}"
    except BaseException as error:
        found[name] = f"raises: {type(error).__name__}: {error}"

for module in (stoker, stoker.data, stoker.recipes):
    for name in module.__all__:
        attempt(f"{module.__name__}.{name}", lambda: getattr(module, name))

for folder in ("texts/a", "texts/b", "images/a", "images/b"):
    os.makedirs(folder)
    for number in range(8):
        kind = folder.split("/")[0]
        if kind == "texts":
            open(f"{folder}/{number}.txt", "w").write(f"words {folder} {number}")
        else:
            import tensorflow as tf
            pixels = np.full((8, 8, 3), number + 100 * (folder[-1] == "a"), "uint8")
            tf.io.write_file(f"{folder}/{number}.png", tf.io.encode_png(pixels))
open("t.csv", "w").write("x,y\n" + "".join(f"{n},{n % 2}\n" for n in range(40)))

model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
rows, answers = np.zeros((8, 3), "float32"), np.zeros((8, 1), "float32")
attempt("fit", lambda: stoker.fit(model, rows, answers, verbose=0))
attempt("predict", lambda: stoker.predict(model, rows))
attempt("evaluate", lambda: stoker.evaluate(model, rows, answers, verbose=0))
attempt("export", lambda: stoker.export(model, "bundle"))
attempt("Predictor", lambda: stoker.Predictor("bundle").predict(rows))
attempt("sign", lambda: stoker.export(model, "signed", sign="key"))
attempt("data.csv", lambda: stoker.data.csv("t.csv", label="y"))
attempt("data.arrays", lambda: stoker.data.arrays((rows, answers), batch_size=4))
attempt("recipes.table", lambda: stoker.recipes.table("t.csv", target="y"))
attempt("recipes.text", lambda: stoker.recipes.text("texts"))
attempt("recipes.image", lambda: stoker.recipes.image("images", epochs=1))

def command(*words):
    def call():
        try:
            code = main(list(words))
        except SystemExit as error:
            code = error.code
        if code:
            raise StokerError(f"exit {code}")
    attempt(" ".join(words), call)

verbs = ("audit", "bundle", "check", "compare", "data", "explain", "export", "fix", "launch", "memory", "package",
         "report", "run", "runs", "serve", "software-gpu", "train", "tune", "ui", "whatif")
for verb in verbs:
    command(verb, "--help")
command("bundle", "bundle", "--verify")
command("serve", "bundle")
command("ui")
command("data", "t.csv")
command("bundle", "--new-key", "key")
json.dump(found, open("found.json", "w"))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("bare")
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "HOME": str(place)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANGS_S,
        check=False,
    )
    assert (place / "found.json").exists(), done.stderr
    outcomes: dict[str, str] = json.loads(Path(place / "found.json").read_text())
    outcomes["stderr"] = done.stderr
    return outcomes


@pytest.mark.slow
def test_nothing_ends_in_a_traceback(found: dict[str, Any]) -> None:
    assert {name: one for name, one in found.items() if one.startswith("raises")} == {}
    assert "Traceback" not in found["stderr"]


def test_a_plain_model_is_trained_exported_and_asked(found: dict[str, Any]) -> None:
    needed = ("fit", "predict", "evaluate", "export", "Predictor", "data.arrays", "bundle bundle --verify")
    assert {name: found[name] for name in needed} == dict.fromkeys(needed, "works")


def test_what_needs_an_extra_names_it(found: dict[str, Any]) -> None:
    assert "stoker[data]" in found["data.csv"]
    assert "stoker[sign]" in found["sign"]
    for name in ("recipes.table", "recipes.text", "recipes.image"):
        assert "stoker[" in found[name], found[name]
    for line in ("stoker[serve]", "stoker[ui]", "stoker[data]", "stoker[sign]"):
        assert line in found["stderr"], line
