"""`stoker predict` and `stoker evaluate`: files of any kind in, answers and scores out."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.cli import main
from stoker.recipes.scores import contest


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a bundle of numbers, one of classes, and their rows."""
    where = tmp_path_factory.mktemp("homes")
    random = np.random.default_rng(0)
    lines = ["id,size,town,class,price"]
    for row in range(300):
        size, town = random.uniform(20, 200), ("Rome", "Oslo")[row % 2]
        lines.append(f'{row},{size:.1f} m2,{town},{("small", "large")[size > 100]},"${1000 * size:,.2f}"')
    (where / "rows.csv").write_text("\n".join(lines) + "\n")
    for label, name, units in (("price", "numbers", 1), ("class", "classes", 2)):
        train: Any = stoker.data.csv(
            where / "rows.csv", label, columns=["size", "town"], lenient=True, cache=False, batch_size=50
        )
        keras.utils.set_random_seed(1)
        inputs = train.features.inputs()
        last = keras.layers.Dense(units, activation="softmax" if units > 1 else None, name="answer")
        model = keras.Model(inputs, last(train.features.encode(inputs)))
        lineage = {"target": label, "target_reading": train.features.label_reading.to_json()}
        lineage["data"] = str(where / "rows.csv")
        stoker.export(model, where / name, train, lineage=lineage)
    return where


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.slow
def test_a_table_is_answered_in_every_format(
    homes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    rows = str(homes / "rows.csv")
    assert main(["predict", str(homes / "classes"), rows, "-o", str(tmp_path / "a.csv")]) == 0
    assert "300 rows answered in" in capsys.readouterr().err
    found = read(tmp_path / "a.csv")
    assert list(found[0]) == [
        *("id", "size", "town", "class", "price", "prediction", "score", "scores.large", "scores.small"),
    ]
    plain = stoker.Predictor(homes / "classes").predict(read(homes / "rows.csv"))
    assert [one["prediction"] for one in found] == list(plain["label"])
    np.testing.assert_allclose([float(one["scores.large"]) for one in found], plain["scores"][:, 0], 1e-6)
    assert [one["id"] for one in found] == [str(number) for number in range(300)]

    table = pyarrow.csv.read_csv(rows)
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    for kind in ("parquet", "jsonl"):
        out = tmp_path / f"out.{kind}"
        assert main(["predict", str(homes / "classes"), str(tmp_path / f"rows.{kind}"), "-o", str(out)]) == 0
        answers = (
            pyarrow.parquet.read_table(out).to_pylist()
            if kind == "parquet"
            else [json.loads(line) for line in out.read_text().splitlines()]
        )
        assert [one["prediction"] for one in answers] == list(plain["label"])
    assert main(["predict", str(homes / "numbers"), rows]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "id,size,town,class,price,prediction"
    assert len(printed) == 301


def test_other_files_and_bad_rows_are_one_line(
    homes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = str(homes / "numbers")
    (tmp_path / "semi.csv").write_text("SIZE;town\n62,5 m2;Rome\n".replace(",", "."), encoding="utf-16")
    assert main(["predict", bundle, str(tmp_path / "semi.csv")]) == 0
    assert capsys.readouterr().out.startswith("SIZE,town,prediction\n62.5 m2,Rome,")
    (tmp_path / "bad.csv").write_text("size,town\n1,Rome\nhuge,Oslo\n")
    (tmp_path / "none.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty.csv").write_text("")
    for rows, line in (
        ("bad.csv", "bad.csv, row 2: 'size': expected float32, got 'huge'"),
        ("none.csv", "none.csv has none of the columns size, town"),
        ("empty.csv", "empty.csv is empty"),
        ("nothing.csv", "there is no file or folder"),
    ):
        assert main(["predict", bundle, str(tmp_path / rows), "-o", str(tmp_path / "out.csv")]) == 2
        error = capsys.readouterr().err
        assert line in error
        assert error.count("\n") == 1
    assert not (tmp_path / "out.csv").exists()
    assert main(["predict", bundle, str(homes / "rows.csv"), "-o", "x.xls"]) == 2
    assert "use a name that ends in .csv, .tsv, .jsonl, .parquet" in capsys.readouterr().err
    assert main(["predict", str(tmp_path), str(homes / "rows.csv")]) == 2
    assert "is not a bundle: it has no bundle.json" in capsys.readouterr().err


def test_the_scores_are_those_of_the_report(
    homes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = read(homes / "rows.csv")
    assert main(["evaluate", str(homes / "classes"), str(homes / "rows.csv"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    scores = stoker.Predictor(homes / "classes").predict(rows)["scores"]
    truth: Any = np.array([["large", "small"].index(row["class"]) for row in rows])
    (wanted,) = contest(truth, {"model": scores}, classes=2, balanced=False)
    assert found["rows"] == 300
    for name, score in wanted.scores.items():
        assert found["scores"][name]["value"] == pytest.approx(score.value)
    assert main(["evaluate", str(homes / "numbers"), str(homes / "rows.csv")]) == 0
    said = capsys.readouterr().out
    assert "RMSE" in said
    assert "300 rows" in said
    lines = (homes / "rows.csv").read_text().splitlines()
    lines[1], lines[2] = "0,5 m2,Rome,tiny,", "1,6 m2,Rome,,"
    (tmp_path / "odd.csv").write_text("\n".join(lines))
    assert main(["evaluate", str(homes / "classes"), str(tmp_path / "odd.csv")]) == 0
    said = capsys.readouterr().out
    assert "1 row without a label left out" in said
    assert "1 row left out: the model has no class 'tiny'" in said
    for words, line in (
        (["--target", "klass"], "has no column 'klass'"),
        (["--target", "town"], "the labels in column 'town': 'Rome' is not a class of the model"),
    ):
        assert main(["evaluate", str(homes / "classes"), str(homes / "rows.csv"), *words]) == 2
        assert line in capsys.readouterr().err


@pytest.mark.slow
def test_folders_of_images_and_of_texts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, shade in (("dark", 10), ("light", 240)):
        (tmp_path / "images" / name).mkdir(parents=True)
        (tmp_path / "texts" / name).mkdir(parents=True)
        for number in range(3):
            pixels: Any = np.full((4, 4, 1), shade + number, np.uint8)
            (tmp_path / "images" / name / f"{number}.png").write_bytes(tf.io.encode_png(pixels).numpy())
            (tmp_path / "texts" / name / f"{number}.txt").write_text(f"a {name} text")
    train: Any = stoker.data.images(tmp_path / "images", image_size=(4, 4), batch_size=2)
    layers = [keras.Input((4, 4, 1), dtype="uint8", name="image"), keras.layers.Flatten()]
    model = keras.Sequential([*layers, keras.layers.Dense(2, activation="softmax")])
    stoker.export(model, tmp_path / "pictures", train)
    assert (
        main(["predict", str(tmp_path / "pictures"), str(tmp_path / "images"), "-o", str(tmp_path / "o.csv")])
        == 0
    )
    assert [Path(one["file"]).name for one in read(tmp_path / "o.csv")] == 2 * ["0.png", "1.png", "2.png"]
    assert main(["evaluate", str(tmp_path / "pictures"), str(tmp_path / "images")]) == 0
    assert "accuracy" in capsys.readouterr().out
    assert main(["predict", str(tmp_path / "pictures"), str(tmp_path / "images" / "dark" / "*.png")]) == 0
    assert capsys.readouterr().out.count("0.png") == 1
    assert main(["predict", str(tmp_path / "pictures"), str(tmp_path / "texts" / "dark")]) == 2
    assert "ends in .jpg" in capsys.readouterr().err

    train = stoker.data.text(tmp_path / "texts", batch_size=2, max_tokens=50, max_length=5)
    entry = keras.Input((None,), dtype="int64")
    x = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(50, 4, mask_zero=True)(entry))
    model = keras.Model(entry, keras.layers.Dense(2, activation="softmax")(x))
    stoker.export(model, tmp_path / "words", train, lineage={"column": "body"})
    assert main(["evaluate", str(tmp_path / "words"), str(tmp_path / "texts")]) == 0
    assert "6 rows" in capsys.readouterr().out
    # Texts are read as in training: a byte order mark counts more than the encoding.
    (tmp_path / "texts" / "dark" / "0.txt").write_text("a dark text", encoding="utf-16")
    assert main(["predict", str(tmp_path / "words"), str(tmp_path / "texts")]) == 0
    capsys.readouterr()
    (tmp_path / "texts" / "dark" / "1.txt").write_bytes(b"\xff")
    assert main(["predict", str(tmp_path / "words"), str(tmp_path / "texts"), "--encoding", "utf8"]) == 2
    assert "1.txt is not UTF-8 text: if it is text, give its encoding, such as --" in capsys.readouterr().err
    (tmp_path / "t.csv").write_text("n,body\n1,a dark text\n")
    assert main(["predict", str(tmp_path / "words"), str(tmp_path / "t.csv")]) == 0
    assert capsys.readouterr().out.startswith(
        "n,body,prediction,score,scores.dark,scores.light\n1,a dark text,"
    )


def test_totals_at_the_end_are_not_scored_and_the_training_file_is_named(
    homes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (homes / "rows.csv").read_text()
    (tmp_path / "footed.csv").write_text(text + 'Total,,,,"$99,999,999.00"\n')
    assert main(["evaluate", str(homes / "numbers"), str(homes / "rows.csv")]) == 0
    scores, _, rest = capsys.readouterr().out.partition("300 rows\n")
    assert rest.startswith("The model was trained on these rows.")
    assert main(["evaluate", str(homes / "numbers"), str(tmp_path / "footed.csv")]) == 0
    assert capsys.readouterr().out == f"{scores}300 rows\n1 row left out: a total or a note at the end\n"


TITLED = {
    "commas": "Homes of 2026\n\nid,size,town,price\n1,50 m2,Rome,50000\n2,60 m2,Oslo,60000\nTotal,,,110000\n",
    "semicolons": (
        "Homes of 2026\nas of 1.1.2026\nid;size;town;price\n1;50 m2;Rome;50000\n2;60 m2;Oslo;60000\n"
        "Total;;;110000\n;;;\n"
    ),
    "padded": "Homes of 2026;;;\nid;size;town;price\n1;50 m2;Rome;50000\n2;60 m2;Oslo;60000\nTotal;110 m2;;110000\n",
}


@pytest.mark.parametrize("name", TITLED)
def test_titles_and_totals_are_read_as_in_training(
    homes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file, bundle = tmp_path / "rows.csv", str(homes / "numbers")
    file.write_text(TITLED[name])
    train: Any = stoker.data.csv(file, "price", lenient=True, cache=False)
    assert (train.rows, list(train.features)) == (2, ["id", "size", "town"])
    assert main(["data", str(file)]) == 0
    assert ": 2 rows, 4 columns" in capsys.readouterr().out
    assert main(["predict", bundle, str(file), "-o", str(tmp_path / "out.csv")]) == 0
    said = capsys.readouterr().err
    assert "1 row not answered: a total or a note at the end (row 3)" in said
    assert "2 rows answered" in said
    answers = read(tmp_path / "out.csv")
    assert [one["id"] for one in answers[:3]] == ["1", "2", "Total"]
    wanted = stoker.Predictor(bundle).predict({"size": ["50 m2", "60 m2"], "town": ["Rome", "Oslo"]})
    plain = np.ravel(next(iter(wanted.values())))
    np.testing.assert_allclose([float(one["prediction"]) for one in answers[:2]], plain, 1e-6)
    assert answers[2]["prediction"] == ""
    assert main(["evaluate", bundle, str(file)]) == 0
    assert "2 rows\n1 row left out: a total or a note at the end" in capsys.readouterr().out


def test_a_missing_input_column_is_said_and_without_any_nothing_is_answered(
    homes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sizes.csv").write_text("size\n50 m2\n")
    (tmp_path / "towns.csv").write_text("town,price\nRome,\n")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    bundle = str(homes / "numbers")
    assert main(["predict", bundle, str(tmp_path / "sizes.csv")]) == 0
    line = f"stoker: {tmp_path / 'sizes.csv'} has no column 'town' (an unknown category is used)\n"
    assert capsys.readouterr().err == line
    assert main(["predict", bundle, str(tmp_path / "towns.csv")]) == 0
    assert re.search(
        r"has no column 'size' \(1\d\d\.\d* is used, the mean in training\)\n", capsys.readouterr().err
    )
    assert main(["predict", bundle, str(tmp_path / "other.csv")]) == 2
    assert "other.csv has none of the columns size" in capsys.readouterr().err


def test_a_cell_that_counts_as_missing_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    from stoker.data.cells import CellReading
    from stoker.serve import table_cells
    from stoker.serve.signature import Field

    reading = CellReading("number", fill=2.0, tolerant=True)
    field = Field("a column of this test", "float32", (), "a", reading=reading)
    for word in ("one", "two"):
        found = table_cells.read_cells(field, np.array([word, "3"], object))
        assert found.tolist() == [2.0, 3.0]
    lines = [one.getMessage() for one in caplog.records if "counts as missing" in one.getMessage()]
    assert lines == [
        "'a column of this test': 'one' cannot be read; it counts as missing, as such cells did in training"
    ]
