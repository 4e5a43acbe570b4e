"""`stoker export` of files that are no model any more: one line, whatever Keras makes of them."""

from __future__ import annotations

import json
import random
import zipfile
from pathlib import Path
from typing import Any

import keras
import pytest

from stoker.cli import main
from stoker.cli.export import _load
from stoker.errors import UsageError

ODD: list[Any] = [
    None, True, 0, -1, 2**63, 1e308, "", "Dense", "keras.layers", [], {}, [None], {"class_name": "Dense"}, [-5],
]  # fmt: skip


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("saved") / "model.keras"
    numbers, word = keras.Input((4,), name="numbers"), keras.Input((), name="word", dtype="string")
    one_hot = keras.layers.StringLookup(vocabulary=["x", "y"], output_mode="one_hot")(word)
    joined = keras.layers.Concatenate()([numbers, one_hot])
    model = keras.Model([numbers, word], keras.layers.Dense(2, activation="softmax")(joined))
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.save(file)
    return file


def places_in(config: Any) -> list[tuple[Any, Any]]:
    """Every container in a configuration with each of its keys."""
    keys = (
        list(config) if isinstance(config, dict) else range(len(config)) if isinstance(config, list) else []
    )
    return [place for key in keys for place in ((config, key), *places_in(config[key]))]


def change(saved: Path, changed: Path, chance: random.Random) -> None:
    """A copy with something else in its configuration, or other bytes in its weights."""
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "config.json":
                config = json.loads(content)
                container, key = chance.choice(places_in(config))
                container[key] = chance.choice(ODD)
                content = json.dumps(config).encode()
            elif chance.random() < 0.2:
                place = chance.randrange(len(content))
                content = content[:place] + chance.randbytes(8) + content[place + 8 :]
            new.writestr(name, content)


def test_a_damaged_model_is_one_line(saved: Path, tmp_path: Path) -> None:
    chance, file, lines = random.Random(5), tmp_path / "model.keras", list[str]()
    assert _load(saved).name
    for _ in range(120):
        change(saved, file, chance)
        try:
            _load(file)
        except UsageError as error:
            lines.append(str(error))
    assert 20 < len(lines) < 120
    assert all(line.startswith(f"{file} cannot be loaded: ") and "\n" not in line for line in lines)


def test_a_directory_is_refused_with_the_file_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    assert main(["export", "runs", "bundle"]) == 2
    assert "runs is a directory: name a .keras file, or a run's id" in capsys.readouterr().err
    (tmp_path / "runs" / "model.keras").touch()
    assert main(["export", "runs", "bundle"]) == 2
    assert "name a .keras file, such as runs/model.keras, or a run's id" in capsys.readouterr().err
