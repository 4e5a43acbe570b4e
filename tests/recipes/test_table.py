"""`stoker.recipes.table`: from a file to a bundle that answers, with baselines, a report and a place in the store."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import stoker
from stoker import clock
from stoker.errors import StokerError
from stoker.recipes import Budget, tables
from stoker.recipes.directory import show
from tests.recipes.data_files import odd_names, sales


class Done:
    """A recipe that was run once, for all tests of this file."""

    def __init__(self, directory: Path, result: Any, printed: str) -> None:
        self.directory, self.result, self.printed = directory, result, printed

    @property
    def run(self) -> Path:
        return Path(self.result["bundle"]).parent


@pytest.fixture(scope="module")
def _where(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A directory to work in, with a store and a cache of its own."""
    directory = tmp_path_factory.mktemp("table")
    before, kept = os.getcwd(), dict(os.environ)
    os.chdir(directory)
    os.environ["STOKER_STORE"] = f"sqlite:///{directory}/store.db"
    os.environ["STOKER_CACHE_DIR"] = str(directory / "cache")
    yield directory
    os.chdir(before)
    os.environ.clear()
    os.environ.update(kept)


@pytest.fixture(scope="module")
def numbers(_where: Path) -> Done:
    sales(_where / "sales.csv")
    result = stoker.recipes.table("sales.csv", "price", epochs=25)
    return Done(_where, result, "")


@pytest.fixture(scope="module")
def classes(_where: Path) -> Done:
    sales(_where / "sold.csv")
    result = stoker.recipes.table("sold.csv", "sold", columns=["size", "town"], epochs=8, name="sold")
    return Done(_where, result, "")


@pytest.mark.slow
def test_a_target_of_numbers_is_predicted_in_its_own_units(numbers: Done) -> None:
    network = numbers.result["contenders"][0]
    constant = next(one for one in numbers.result["contenders"] if one["name"] == "constant")
    assert network["scores"]["RMSE"]["value"] < 0.6 * constant["scores"]["RMSE"]["value"]
    assert (
        network["scores"]["RMSE"]["low"]
        < network["scores"]["RMSE"]["value"]
        < network["scores"]["RMSE"]["high"]
    )
    answer = stoker.Predictor(numbers.result["bundle"]).predict(
        {"size": 100.0, "town": "Oslo", "rooms": 2, "sold": "yes"}
    )
    assert 60_000 < float(np.ravel(answer["prediction"])[0]) < 220_000


@pytest.mark.slow
@pytest.mark.usefixtures("_where")
@pytest.mark.parametrize("only", ["network", "trees"])
def test_the_exported_model_can_learn_from_all_rows_after_it_was_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sales(tmp_path / "sold.csv")
    options: dict[str, Any] = {"columns": ["size", "town"], "epochs": 3, "only": only}
    scored = stoker.recipes.table("sold.csv", "sold", name=f"some-{only}", **options)
    whole = stoker.recipes.table("sold.csv", "sold", name=f"all-{only}", all_rows=True, **options)
    assert scored is not None
    assert whole is not None
    assert whole["contenders"] == scored["contenders"]
    assert (whole["learned_from_all_rows"], scored["learned_from_all_rows"]) == (True, False)
    assert "trained again on all rows" in Path(whole["report"]).read_text()
    assert "trained again on all rows" not in Path(scored["report"]).read_text()
    rows = [{"size": size, "town": "Oslo"} for size in (40.0, 80.0, 120.0, 160.0)]
    before, after = (stoker.Predictor(one["bundle"]).predict(rows)["scores"] for one in (scored, whole))
    assert np.abs(np.asarray(before) - np.asarray(after)).max() > 1e-4


def test_training_on_all_rows_needs_time() -> None:
    budget = Budget(100.0, started_ns=clock.now_ns() - int(60e9))
    assert not budget.has_time_again()
    assert Budget(100.0).has_time_again()
    assert Budget().has_time_again()


def test_useless_columns_are_left_out(numbers: Done) -> None:
    assert "id" not in numbers.result["settings"]["columns"]
    assert "country" not in numbers.result["settings"]["columns"]


@pytest.mark.parametrize(("name", "left_out"), [("customer_id", True), ("orderId", True), ("paid", False)])
def test_numbers_that_are_ids_are_left_out_in_any_order(name: str, left_out: bool) -> None:
    numbers: Any = np.random.default_rng(0).permutation(200) + 7000
    assert (tables._explain_useless(name, numbers, "whole") is not None) == left_out
    # A number that comes again is one of someone who does, and may tell something.
    assert tables._explain_useless(name, numbers // 2, "whole") is None


@pytest.mark.slow
def test_all_models_are_there_and_the_verdict_names_the_best(numbers: Done, classes: Done) -> None:
    for done in (numbers, classes):
        first, *others = done.result["contenders"]
        names = {first["name"], *(one["name"] for one in others)}
        assert names - {"ensemble"} == {"network", "constant", "linear", "boosted trees"}
        best = min(others, key=lambda one: one["behind"]["value"])
        assert best["name"] in done.result["verdict"]


def test_the_exported_model_comes_first_and_is_what_the_bundle_answers_with(
    numbers: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    first = numbers.result["contenders"][0]["name"]
    shares = numbers.result["exported"]
    assert first == (next(iter(shares)) if len(shares) == 1 else "ensemble")
    bundle = json.loads((numbers.run / "bundle" / "bundle.json").read_text())
    assert bundle["lineage"]["model"] == first
    losses = numbers.result["chosen_by"]["losses"]
    assert set(losses) >= {"network", "linear", "boosted trees", first}
    assert losses[first] <= min(losses.values())
    said = "which was best on the validation rows (RMSE "
    show(numbers.result)
    assert said in capsys.readouterr().out
    assert said in (numbers.run / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("only", "name"), [("trees", "boosted trees"), ("linear", "linear")])
@pytest.mark.usefixtures("_where")
def test_only_exports_the_model_that_was_asked_for(only: str, name: str) -> None:
    sales(Path("only.csv"))
    result: Any = stoker.recipes.table("only.csv", "price", only=only, epochs=1, runs="others")
    assert result["exported"] == {name: 1.0}
    assert result["contenders"][0]["name"] == name
    saved = keras.models.load_model(Path(result["bundle"]) / "model.keras")
    assert not saved.trainable_variables
    answer = stoker.Predictor(result["bundle"]).predict(
        {"size": 100.0, "town": "Oslo", "rooms": 2, "sold": "yes"}
    )
    assert 60_000 < float(np.ravel(answer["prediction"])[0]) < 220_000
    with pytest.raises(StokerError, match="only='forest' must be 'network', 'linear', 'trees'"):
        stoker.recipes.table("only.csv", "price", only="forest")


def test_a_target_of_words_is_told_by_its_words(classes: Done) -> None:
    answer = stoker.Predictor(classes.result["bundle"]).predict({"size": 190.0, "town": "Oslo"})
    assert answer["label"] == "yes"
    assert set(classes.result["contenders"][0]["scores"]) == {
        "accuracy",
        "balanced accuracy",
        "log loss",
        "AUC",
    }


def test_the_newest_run_is_latest(classes: Done) -> None:
    assert (classes.directory / "runs" / "latest").resolve() == classes.run.resolve()


def test_the_same_call_again_finds_the_run_done(numbers: Done, capsys: pytest.CaptureFixture[str]) -> None:
    before = (numbers.run / "result.json").stat().st_mtime_ns
    again = stoker.recipes.table("sales.csv", "price", epochs=25)
    assert again == json.loads((numbers.run / "result.json").read_text())
    assert (numbers.run / "result.json").stat().st_mtime_ns == before
    assert "has finished training" in capsys.readouterr().out


def test_a_name_that_is_taken_is_said(classes: Done) -> None:
    with pytest.raises(StokerError, match="holds a run with different settings"):
        stoker.recipes.table("sold.csv", "sold", columns=["size"], name="sold")


def test_the_store_has_the_run_its_trainings_and_its_files(numbers: Done) -> None:
    found = {one["name"]: one for one in stoker.runs()}
    mine = found[numbers.run.name]
    assert mine["kind"] == "table recipe"
    assert mine["state"] == "finished"
    children = [one for one in stoker.runs() if one.get("parent") == mine["id"]]
    assert len(children) >= 2
    bundle = json.loads((numbers.run / "bundle" / "bundle.json").read_text())
    assert bundle["lineage"]["run"] == mine["id"]
    assert "RMSE" in bundle["evaluation"]


def test_the_report_shows_everything_and_runs_nothing(numbers: Done, classes: Done) -> None:
    page = (numbers.run / "report.html").read_text()
    for title in (
        "Against the baselines",
        "Learning curves",
        "Predicted and true",
        "What matters to it",
        "worst mistakes",
    ):
        assert title in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    page = (classes.run / "report.html").read_text()
    for title in ("Which classes are mistaken for which", "Calibration"):
        assert title in page


def test_importance_finds_the_column_that_counts(numbers: Done) -> None:
    assert numbers.result["importance"][0][0] == "size"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["y", "sold"])
def test_columns_may_be_called_anything(
    target: str, numbers: Done, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    names = odd_names(numbers.directory / "odd.csv")
    result = stoker.recipes.table("odd.csv", target, epochs=1, name=f"odd-{target}")
    assert result is not None
    inputs = stoker.Predictor(result["bundle"]).bundle.signature.inputs
    assert [one.name for one in inputs] == [name for name in names if name != target]
    assert not [one for one in recwarn if "all keys in the dict must match" in str(one.message)]
    assert "not a valid" not in capsys.readouterr().err


def test_a_column_may_have_the_name_of_any_layer(numbers: Done, classes: Done) -> None:
    from stoker.recipes.programs import table

    for done, other in ((numbers, "probabilities"), (classes, "prediction")):
        settings = table.Settings(**done.result["settings"])
        train, _, _ = table.read(settings)
        inputs = train.features.inputs()
        columns = _layers(keras.Model(inputs, train.features.encode(inputs)))
        network = table.network("periodic", train, np.arange(9.0), settings)
        assert _layers(network) - columns == table.LAYERS - {other}


def _layers(model: Any) -> set[str]:
    """Their names, without Keras' numbers."""
    return {re.sub(r"_\d+$", "", one.name) for one in model.operations}
