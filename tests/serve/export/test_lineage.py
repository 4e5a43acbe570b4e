"""A bundle knows its run, and the store knows the bundle: from training through export to the server."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker.cli import main
from stoker.errors import ArgumentError
from stoker.serve.plane.deployment import begin_run, end_run
from stoker.serve.plane.settings import ServerSettings
from stoker.tracking.store import address
from stoker.tracking.store.queries import open_reader
from stoker.tracking.store.verifying import verify
from tests.serve.http.asking import application


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> address.Address:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_STORE", f"sqlite:///{tmp_path}/stoker.db")
    return address.require()


def small() -> keras.Model:
    keras.utils.set_random_seed(2)
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, activation="softmax")], name="small")
    model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def links(store: address.Address) -> set[tuple[str, str, str]]:
    """Run's kind, relation, artifact's kind."""
    with open_reader(store) as reader:
        kinds = {row.id: row.kind for row in reader.runs()}
        return {(kinds[one.run], one.relation, one.kind) for one in reader.artifacts()}


def test_from_training_to_the_server(tmp_path: Path, store: address.Address, capsys: Any) -> None:
    x: Any = np.random.default_rng(0).random((128, 3), "float32")
    y: Any = np.arange(128) % 2
    model = small()
    saver = keras.callbacks.ModelCheckpoint(str(tmp_path / "model.keras"))
    history = stoker.fit(model, x, y, epochs=2, verbose=0, callbacks=[saver])
    made = stoker.export(model, tmp_path / "bundle", examples=x, labels=["no", "yes"], lineage={"ticket": 7})

    # In the bundle: the run with its code and data, what it was worth, where the audit stood.
    told = made.description["lineage"]
    assert told["ticket"] == 7
    assert told["training"]["run"] == history.run
    assert told["training"]["data"][0]["hash"].startswith("sha256:")
    assert told["audit"]["store"] == str(store)
    assert made.description["evaluation"]["loss"] == pytest.approx(history.history["loss"][-1])
    assert made.description["statistics"]["input"]["mean"] == pytest.approx(x.mean(), abs=1e-6)

    # In the store: the training made the model, the export used it and made the bundle.
    assert {
        ("train", "makes", "model"), ("export", "uses", "model"), ("export", "makes", "bundle"),
    } <= links(store)  # fmt: skip
    with open_reader(store) as reader:
        rows = {row.seq: row.hash for row in reader.audit()}
        export = reader.resolve(told["export"])
        (bundle,) = [one for one in reader.artifacts(export) if one.relation == "makes"]
    assert rows[told["audit"]["seq"]] == told["audit"]["hash"]
    assert bundle.path == str(tmp_path / "bundle")

    # A server uses the bundle, and what it answers is sampled.
    settings = ServerSettings({"pets": str(tmp_path / "bundle")}, record=1.0)
    run = begin_run(settings, store)
    app, said = application(
        {"pets": tmp_path / "bundle"}, record=1.0, run=run.id, store=f"sqlite:///{tmp_path}/stoker.db"
    )
    asked(app, 120, 0.0)
    assert [line for line in said if "drifted" in line] == []
    asked(app, 400, 3.0)
    (line,) = [line for line in said if "drifted: the mean" in line]
    assert line.startswith("pets: 'input' has drifted: the mean is ")
    metrics = answered(app, "GET", "/metrics").decode()
    assert 'stoker_drift{model="pets",input="input",of="mean",worker="0"} ' in metrics
    assert json.loads(answered(app, "GET", "/try/pets"))["drift"][0].startswith("'input' has drifted")
    app.models.close()
    end_run(run)
    (file,) = (tmp_path / ".stoker" / "answers").iterdir()
    first = json.loads(file.read_text().splitlines()[0])
    assert set(first["answers"]) == {"output", "label", "scores"}
    assert np.array(first["inputs"]["input"]).shape == (40, 3)
    assert {("serve", "uses", "bundle"), ("serve", "makes", "answers")} <= links(store)
    with open_reader(store) as reader:
        events = [json.loads(row.details) for row in reader.audit() if row.event == "deployed"]
        (serving,) = [row for row in reader.runs() if row.kind == "serve"]
    assert [(one["model"], one["hash"]) for one in events] == [("pets", bundle.hash)]
    assert serving.state == "finished"
    assert "drift/pets/input/mean" in serving.series
    assert verify(store).problems == []

    # The run's model by the command; what was replaced since is refused.
    out = str(tmp_path / "again")
    assert main(["export", history.run, out, "--labels", "no,yes"]) == 0
    again = json.loads((tmp_path / "again" / "bundle.json").read_text())
    assert again["lineage"]["training"]["run"] == history.run
    assert again["evaluation"]["accuracy"] == pytest.approx(history.history["accuracy"][-1])
    capsys.readouterr()
    assert main(["bundle", out]) == 0
    assert f"run    {history.run} (small), in {store}" in capsys.readouterr().out
    (tmp_path / "model.keras").write_bytes(b"other")
    assert main(["export", history.run, out, "--force"]) == 2
    assert f"is not the file that run {history.run} made: it has been replaced" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("broken_off", [False, True], ids=["to the end", "by Ctrl-C"])
def test_a_run_with_checkpoints_is_exported(tmp_path: Path, store: address.Address, broken_off: bool) -> None:
    class Interrupt(keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            if broken_off:
                raise KeyboardInterrupt

        get_state = set_state = None

    model = small()
    x = np.random.default_rng(3).random((64, 3)).astype("float32")
    with stoker.track("around") as around, contextlib.suppress(KeyboardInterrupt):
        stoker.fit(
            model, x, x[:, 0] > 0.5, epochs=2, verbose=0, checkpoint=tmp_path / "run", callbacks=[Interrupt()]
        )
    around.flush()
    out = tmp_path / "bundle"
    assert main(["export", around.id, str(out)]) == 0
    given = stoker.Predictor(out).predict(x[:5])
    (answers,) = given.values() if isinstance(given, dict) else (given,)
    assert np.allclose(answers, model.predict(x[:5], verbose=0))


class Unsaved(keras.layers.Layer):
    """Keras cannot save it: what it holds has no words in JSON."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = keras.layers.Dense(1)

    def call(self, inputs: Any) -> Any:
        return self.inner(inputs)

    def get_config(self) -> dict[str, Any]:
        raise NotImplementedError


def test_a_model_that_keras_cannot_save_is_trained_all_the_same(tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((3,)), Unsaved()])
    model.compile("sgd", "mse")
    x = np.ones((8, 3), "float32")
    history = stoker.fit(model, x, x[:, :1], verbose=0, checkpoint=tmp_path / "run")
    assert len(history.history["loss"]) == 1
    assert [one.suffix for one in (tmp_path / "run").iterdir() if "keras" in one.name] == []


def asked(app: Any, count: int, more: float) -> None:
    rows = np.random.default_rng(count).random((count, 3)) + more
    for first in range(0, count, 40):
        body = {"inputs": rows[first : first + 40].tolist()}
        assert b"outputs" in answered(app, "POST", "/v1/models/pets:predict", body)


def answered(app: Any, method: str, path: str, body: Any = b"") -> bytes:
    import asyncio

    from tests.serve.http.asking import ask

    found = asyncio.run(ask(app, method, path, body))
    assert found.status == 200
    return found.body


def test_runs_without_a_model_are_one_line(tmp_path: Path, store: address.Address, capsys: Any) -> None:
    with stoker.track("nothing") as run:
        run.log(0, loss=1.0)
    run.flush()
    for word, line in (
        (run.id, f"run {run.id} saved no model: save one with keras.callbacks.ModelCheckpoint"),
        ("2000", "there is no file 2000, and no run with id '2000' in the store"),
        ("none.keras", "there is no file none.keras"),
    ):
        assert main(["export", word, str(tmp_path / "bundle")]) == 2
        assert line in capsys.readouterr().err
    with pytest.raises(ArgumentError, match="run='2000': no run with id '2000'"):
        stoker.export(small(), tmp_path / "bundle", run="2000")
    assert not (tmp_path / "bundle").exists()


def test_without_a_store_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_STORE", "off")
    with pytest.raises(ArgumentError, match="the store is switched off"):
        stoker.export(small(), tmp_path / "bundle", run="2000")
