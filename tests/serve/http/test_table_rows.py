"""Every row of a training file is answered as it is, over REST and by the predictor."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

pytest.importorskip("orjson")

import stoker
from stoker.serve.http.app import App
from tests.recipes.data_files import sales
from tests.serve.http.asking import Answer, application, ask

PREDICT = "/v1/models/sales:predict"


def asked(app: App, method: str, path: str, body: Any, **headers: str) -> Answer:
    return asyncio.run(ask(app, method, path, body, **headers))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A training file and the bundle of an untrained network for it."""
    where = tmp_path_factory.mktemp("rows")
    file = sales(where / "sales.csv", 60)
    lines = file.read_text().splitlines()
    days = ["day,new", *(f"2026-0{1 + row % 9}-11,{str(row % 3 == 0).lower()}" for row in range(60))]
    file.write_text("\n".join(f"{day},{line}" for day, line in zip(days, lines, strict=True)) + "\n")
    wanted = ["day", "new", "size", "town", "rooms", "sold"]
    train = stoker.data.csv(file, label="price", batch_size=16, columns=wanted, cache=False)
    keras.utils.set_random_seed(1)
    inputs = train.features.inputs()
    model = keras.Model(inputs, keras.layers.Dense(1, name="guess")(train.features.encode(inputs)))
    stoker.export(model, where / "bundle", train)
    return file, where / "bundle"


def test_every_row_of_the_training_file_is_answered(table: tuple[Path, Path]) -> None:
    file, bundle = table
    with file.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    app, _ = application({"sales": bundle})
    answer = asked(app, "POST", PREDICT, {"instances": rows})
    assert answer.status == 200, answer.body
    many = answer.json()["predictions"]
    assert len(many) == 60
    assert all(one == one for (one,) in many)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    answer = asked(app, "POST", PREDICT, {"inputs": columns})
    np.testing.assert_allclose(answer.json()["outputs"], many, 1e-5)
    answer = asked(app, "POST", PREDICT, file.read_bytes(), content_type="text/csv; charset=utf-8")
    np.testing.assert_allclose(answer.json()["predictions"], many, 1e-5)
    # With a title, other separators and a total, as a spreadsheet exports them.
    plain_text = file.read_text()
    assert not set(';"') & set(plain_text)
    width = plain_text.partition("\n")[0].count(",")
    dressed = f"Sales\n{plain_text}Total{width * ','}\n".replace(",", ";").encode()
    answer = asked(app, "POST", PREDICT, dressed, content_type="text/csv")
    np.testing.assert_allclose(answer.json()["predictions"], many, 1e-5)
    again = dressed.replace(
        b"\nTotal", b"\n" + plain_text.partition("\n")[0].replace(",", ";").encode() + b"\nTotal"
    )
    answer = asked(app, "POST", PREDICT, again, content_type="text/csv")
    assert (answer.status, answer.json()["error"]) == (400, "row 61 cannot be answered: the header again")
    # Typed as the reader has them, the rows have the same answers.
    typed: Any = stoker.data.csv(file, label="price", batch_size=60, cache=False, raw=True)
    plain = {name: one for name, one in next(typed.as_numpy_iterator())[0].items() if name != "id"}
    predictor = stoker.Predictor(bundle)
    for given, wanted in ((plain, many), (rows, many), (rows[3], many[3])):
        np.testing.assert_allclose(predictor.predict(given)["guess"], wanted, 1e-5)


def test_a_row_may_lack_cells_but_not_all(table: tuple[Path, Path]) -> None:
    app, _ = application({"sales": table[1]})
    answer = asked(app, "POST", PREDICT, {"instances": [{"size": "70"}, {"town": None, "id": 3}]})
    first, second = answer.json()["predictions"]
    assert first[0] == first[0] != second[0] == second[0]
    for rows, line in (
        ([{"id": 3}], "row 1 has none of the columns"),
        ([{"size": "large"}], "'size': expected float32, got 'large'"),
    ):
        answer = asked(app, "POST", PREDICT, {"instances": rows})
        assert (answer.status, line in answer.json()["error"]) == (400, True)
    for body in (b"size\n", b"", b"\xff\xfe"):
        answer = asked(app, "POST", PREDICT, body, content_type="text/csv")
        assert answer.status == 400
