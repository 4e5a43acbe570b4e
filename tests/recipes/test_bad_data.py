"""Data that nobody can learn from: one line, before any training, exit code 2."""

from __future__ import annotations

import re
import shlex
import urllib.request
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest

import stoker
from stoker import recipes
from stoker.cli import main
from stoker.errors import ArgumentError
from tests.recipes.data_files import reviews, sales, shapes

pytestmark = pytest.mark.tensorflow


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STOKER_CACHE_DIR", str(tmp_path / "cache"))


def _wide(path: Path) -> None:
    names = ",".join(f"c{number}" for number in range(10_000))
    row = ",".join(str(number % 7) for number in range(10_000))
    path.write_text("\n".join([f"{names},y", *(f"{row},{number % 2}" for number in range(30))]))


def _lines(text: str, count: int = 60) -> Callable[[Path], None]:
    """A header, and a row for each number."""

    def write(path: Path) -> None:
        path.write_text(
            "a,y\n" + "".join(text.format(n=number, half=number % 2) + "\n" for number in range(count))
        )

    return write


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: path.write_bytes(b""), "empty"),
        (lambda path: path.write_text("a,y\n"), "no rows"),
        (_lines("{n},yes"), "'yes' in every row"),
        (_lines("{n},3"), "3 in every row"),
        (_lines("{n},"), "no label"),
        (_lines(",{half}"), "no column to learn"),
        (_lines("1,{half}"), "no column to learn"),
        (_lines("{n}.5,{half}", 10), "10 rows"),
        (
            _lines("{n}.5,name {n}"),
            "target 'y' has 60 different values in 60 rows, too many for classes, as each needs two rows",
        ),
        (
            lambda path: path.write_text(
                "a,y\n" + "".join(f"{n}.5,{n if n % 4 else 'on request'}\n" for n in range(60))
            ),
            "75 % of its cells are numbers, others are not, such as 'on request'; "
            "to leave their rows out, read it with --types y=number",
        ),
        (_wide, "10,001 columns"),
        (lambda path: path.write_bytes(bytes(range(256)) * 200), "is not UTF-8 text"),
        (lambda path: None, "there is no file"),
    ],
    ids=[
        "empty", "header only", "one class", "one number", "target missing", "column missing", "constant column",
        "few rows", "too many classes", "numbers among words", "10,000 columns", "binary", "no file",
    ],
)  # fmt: skip
def test_a_table_nobody_can_learn_from(
    write: Callable[[Path], None], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "data.csv")
    assert main(["train", "table", "data.csv", "--target", "y"]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_million_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open(tmp_path / "data.csv", "w") as file:
        file.write("a,y\n")
        file.writelines(f"{number % 9},class{number}\n" for number in range(1_000_000))
    assert main(["train", "table", "data.csv", "--target", "y"]) == 2
    error = capsys.readouterr().err
    assert "give a column of numbers or classes" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "cost"], "cost"),
        (["--target", "price", "--columns", "size,colour"], "colour"),
        (["--target", "town", "--task", "numbers"], "holds text"),
        (["--target", "price", "--time", "soon"], "--time 'soon'"),
        (["--target", "price", "--epochs", "0"], "--epochs 0"),
        (["--target", "price", "--seed", "-1"], "--seed -1 must be at least 0"),
        (["--target", "price", "--seed", "99999999999999999999"], "must be at most 4294967295"),
        (["--target", "price", "--sep", ";;"], "--sep ';;' must be one character"),
        (["--target", "price", "--sep", ""], "--sep '' must be one character"),
        (["--target", "price", "--runs", "sales.csv"], "--runs 'sales.csv' is a file"),
        (["--target", "price", "--runs", "sales.csv/runs"], "cannot be written: Not a directory"),
        (
            ["--target", "price", "--group", "town", "--time-column", "id"],
            "and --time-column 'id': split the rows",
        ),
        (["--target", "price", "--name", "latest"], "--name 'latest' is reserved"),
        (["--target", "Price"], "--target: there is no column 'Price'; did you mean 'price'?"),
        (["--target", "price", "--time-column", "when"], "--time-column: there is no column 'when'"),
        (["--target", "price", "--name", "../x"], "must be the name of a directory"),
    ],
)
def test_a_request_that_makes_no_sense(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sales(tmp_path / "sales.csv", 60)
    assert main(["train", "table", "sales.csv", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_arguments_of_the_functions_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    import pandas as pd

    data: Any = sales(tmp_path / "sales.csv", 60)
    for options, said in (
        ({"seed": "a"}, "seed='a' must be a whole number"),
        ({"epochs": 0}, "epochs=0 must be at least 1"),
        ({"epochs": 2.5}, "epochs=2.5 must be a whole number"),
        ({"target": None}, "target=None must be the name of the column to predict"),
        ({"group": 3}, "group=3 must be the name of a column"),
        ({"runs": 7}, "runs=7 must be the path of a directory"),
        ({"data": pd.DataFrame({"y": [1]})}, "not DataFrame; write a frame to a file first"),
    ):
        with pytest.raises(ArgumentError, match=re.escape(said)):
            recipes.table(**{"data": data, "target": "price", **options})
    texts: Any = ["a text"]
    for recipe in (recipes.text, recipes.image):
        with pytest.raises(ArgumentError, match="path of a file or a folder, or a glob, not list"):
            recipe(texts)
        with pytest.raises(ArgumentError, match="seed=-1 must be at least 0"):
            recipe(str(tmp_path), seed=-1)
    assert not (tmp_path / "runs").exists()


def test_what_looks_wrong_is_told_before_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["who,amount,outcome,code,y"]
    lines += [
        f"w{n % 9},{n * 7 % 31}.5,{'paid' if n % 2 else 'open'},{n % 2},{'yes' if n % 2 else 'no'}"
        for n in range(60)
    ]
    lines += [f"w{n},{n}.5,lost,7,rare" for n in range(3)]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    asked = ["train", "table", "data.csv", "--target", "y", "--eject", "mine.py"]
    assert main([*asked, "--group", "who"]) == 0
    said = capsys.readouterr().out
    assert "class 'rare' has 3 rows" in said
    assert "column 'outcome' gives the target away by itself" in said
    assert "column 'code' gives the target away by itself" in said
    assert "column 'amount'" not in said
    program = (tmp_path / "mine.py").read_text()
    assert 'group="who"' in program
    assert 'columns=("amount", "outcome", "code", "y")' in program
    assert main([*asked, "--force", "--time-column", "who"]) == 2
    assert "should hold dates or numbers" in capsys.readouterr().err


@pytest.fixture
def told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[[list[str]], str]:
    """What is said of a table of these lines, whose last column is the target, before it would be trained."""

    def ask(lines: list[str]) -> str:
        (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
        target = lines[0].rpartition(",")[2]
        assert main(["train", "table", "data.csv", "--target", target, "--eject", "mine.py", "--force"]) == 0
        return capsys.readouterr().out

    return ask


def test_one_class_that_is_spelled_in_two_ways_is_told(told: Callable[[list[str]], str]) -> None:
    said = told(["x,y", *(f"{n * 7 % 31}.5,{('Y', 'n', 'y')[n % 3]}" for n in range(60))])
    assert "classes 'Y' and 'y' differ only in case or spaces" in said
    said = told(["x,y", *(f"{n * 7 % 31}.5,{('Yes', 'No ', 'yes')[n % 3]}" for n in range(60))])
    assert "the target: 2 classes, Yes 40, No 20; 'yes' read as 'Yes', spaces around 20 cells removed" in said
    assert "differ only" not in said


def test_numbers_that_separate_the_classes_are_told(told: Callable[[list[str]], str]) -> None:
    lines = ["size,score,nearly,y"]
    for n in range(90):
        kind, place = n % 3, n * 7 % 90 / 1000
        lines.append(f"{n * 7 % 31}.25,{kind + place},{kind + place + (n == 31)},{'abc'[(kind + 1) % 3]}")
    said = told(lines)
    assert "column 'score' gives the target away by itself" in said
    assert "'size'" not in said
    assert "'nearly'" not in said


def test_the_target_in_another_unit_is_told(told: Callable[[list[str]], str]) -> None:
    lines = ["size,cents,price"]
    for n in range(60):
        price = 31 * n % 997 + 0.5
        lines.append(f"{n * 7 % 31}.25,{'' if n % 9 == 4 else round(100 * price)},{price}")
    said = told(lines)
    assert "column 'cents' gives the target away by itself" in said
    assert "'size'" not in said


def _numbers(y: Callable[[int], str], x: Callable[[int], str] = str) -> str:
    """A table of which a column of inputs and the target are written as these write them."""
    rows = (f'"{x(number * 7 % 31)}",{number % 4 * 2.5},"{y(number * 13 % 97)}"' for number in range(1, 81))
    return "x,z,y\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (_numbers(lambda n: f"{n}.5e299"), "target 'y' has 80 values, the first in row 1 (1.35e+300), too large"),
        (_numbers(lambda n: f"{n}.5e-300"), "target 'y' has values too small to be learned in float32, such as 9"),
        (_numbers(lambda n: "inf" if n == 26 else f"{n}.5"), "target 'y' has 1 infinite value, in row 2 (inf)"),
        (_numbers(lambda n: f"{n}.5", lambda n: f"{n}.5e300"), "column 'x' has 80 values, the first in row 1"),
        (
            _numbers(lambda n: f"{n}.5", lambda n: "-inf" if n == 14 else f"{n}.5"),
            "column 'x' has 3 infinite values, the first in row 2 (-inf)",
        ),
        (_numbers(lambda n: f"{n}.5%"), "target 'y' looks like numbers written with '%', such as '1.5%'"),
        (_numbers(lambda n: f"${n},000"), "target 'y' looks like numbers written with '$', such as '$1,000'"),
        (_numbers(lambda n: f"{n},000.5"), "target 'y' looks like numbers written with ',', such as '1,000.5'"),
        (_numbers(lambda n: f"{n % 28 + 1}/12/2026"), "target 'y' looks like dates, such as '1/12/2026'"),
        (_numbers(lambda n: "yes" if n % 3 else ""), "25 rows have no label (y), the first is row 3"),
        (_numbers(lambda n: "yes" if n != 39 else ""), "row 3 has no label (y): fill it in or leave it out"),
    ],
    ids=[
        "large target", "small target", "infinite target", "large column", "infinite column", "percents", "dollars",
        "thousands", "dates", "empty classes", "an empty class",
    ],
)  # fmt: skip
def test_values_nobody_can_learn_from(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data.csv").write_text(text)
    assert main(["train", "table", "data.csv", "--target", "y", "--eject", "mine.py", "--strict"]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert (captured.out, captured.err.count("\n")) == ("", 1)


def test_numbers_and_dates_that_are_taken_for_words_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["size,share,day,price"]
    lines += [f'"{n},25",{n % 30}%,{n % 28 + 1}.{n % 11 + 1}.2026,{31 * n % 997}.5' for n in range(60)]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    asked = ["train", "table", "data.csv", "--target", "price", "--eject", "mine.py", "--strict"]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert (
        "column 'size' is left out: it looks like numbers written with ',', such as '0,25': write them"
        in said
    )
    assert "column 'share' is read as words: it looks like numbers written with '%', such as" in said
    assert "column 'day' is left out: it looks like dates, such as" in said
    assert main([*asked, "--force", "--time-column", "day"]) == 2
    assert "write dates as 2026-12-31" in capsys.readouterr().err


def test_texts_without_a_class(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"a text of {n} words,{('good', 'bad', '')[n % 3]}" for n in range(60)]
    (tmp_path / "data.csv").write_text("review,mood\n" + "\n".join(rows) + "\n")
    assert main(["train", "text", "data.csv", "--column", "review", "--target", "mood"]) == 2
    assert "20 rows have no label (mood), the first is row 3" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_folder_of_several_kinds_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    (tmp_path / "data").mkdir()
    sales(tmp_path / "data" / "a.csv", 60)
    pd.read_csv(tmp_path / "data" / "a.csv").to_parquet(tmp_path / "data" / "b.parquet")
    assert main(["train", "table", "data", "--target", "price", "--eject", "mine.py"]) == 0
    said = capsys.readouterr().out
    assert "data/a.csv is read, data/b.parquet is not; give a glob, such as data/*.parquet" in said
    assert said.count("several kinds") == 1
    assert main(["train", "table", "data/*.csv", "--target", "price", "--eject", "mine.py", "--force"]) == 0
    assert "several kinds" not in capsys.readouterr().out


def test_another_encoding_is_asked_for_and_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["size,colour", *(f"{n}.5,{'grün' if n % 3 else 'blau'}" for n in range(60))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")
    asked = ["train", "table", "data.csv", "--target", "colour", "--eject", "mine.py", "--strict"]
    assert main(asked) == 2
    assert "--encoding 'latin-1'" in capsys.readouterr().err
    assert main([*asked, "--encoding", "latin-1"]) == 0
    assert 'encoding="latin-1"' in (tmp_path / "mine.py").read_text()
    for file in reviews(tmp_path / "texts").rglob("*.txt"):
        file.write_text(f"{file.read_text()} schön", encoding="latin-1")
    asked = ["train", "text", "texts", "--eject", "mine.py", "--force"]
    assert main(asked) == 2
    assert "--encoding 'latin-1'" in capsys.readouterr().err
    assert main([*asked, "--encoding", "latin-1"]) == 0


def _one_class(folder: Path) -> None:
    first, second = sorted(folder.iterdir())
    for file in first.iterdir():
        file.rename(second / f"x{file.name}")
    first.rmdir()


def _cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:40])


def _everywhere(content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        for file in folder.rglob("*.*"):
            file.write_bytes(content)

    return write


def _many_classes(folder: Path) -> None:
    for number in range(1200):
        (folder / f"c{number}").mkdir()
        (folder / f"c{number}" / "one.txt").write_text("a text")


@pytest.mark.parametrize(
    ("kind", "spoil", "said"),
    [
        ("text", _one_class, "'good' in every row"),
        ("text", _many_classes, "too many for classes"),
        ("text", _everywhere(b""), "all texts are empty"),
        ("text", _everywhere(b"\0" * 99), "000.txt is not UTF-8 text"),
        ("text", _everywhere(bytes(range(256))), "000.txt is not UTF-8 text"),
        ("image", _one_class, "'down' in every row"),
        ("image", _everywhere(b""), "000.png cannot be decoded"),
        ("image", _everywhere(bytes(range(256))), "000.png cannot be decoded"),
        ("image", lambda folder: _cut_off(folder / "down" / "007.png"), "007.png cannot be decoded"),
        ("text", lambda folder: (folder / "empty").mkdir(), "data/empty holds no file"),
        ("text", lambda folder: (folder / "bad" / "a.txt").symlink_to("gone"), "a.txt is a broken link"),
        ("image", lambda folder: (folder / "empty").mkdir(), "data/empty holds no file"),
        ("image", lambda folder: (folder / "down" / "a.png").symlink_to("a.png"), "a.png is a broken link"),
        ("image", lambda folder: folder.joinpath("\udcff").mkdir(), "not UTF-8: rename it"),
    ],
    ids=[
        "texts of one class", "texts of many classes", "empty texts", "texts of nothing", "bytes for texts",
        "images of one class", "empty images", "bytes for images", "a corrupt image",
        "no text of a class", "a text's link", "no image of a class", "an image's link", "a name that is no text",
    ],
)  # fmt: skip
def test_a_folder_nobody_can_learn_from(
    kind: str, spoil: Callable[[Path], None], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = (reviews if kind == "text" else shapes)(tmp_path / "data")
    spoil(folder)
    assert main(["train", kind, "data"]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert printed.err.strip().isprintable()
    assert "{{" not in printed.err
    assert printed.out.count("\n") <= 1
    assert not (tmp_path / "runs").exists()


def test_a_table_of_texts_needs_its_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sales(tmp_path / "sales.csv", 60)
    assert main(["train", "text", "sales.csv"]) == 2
    assert "give --column" in capsys.readouterr().err


def test_a_base_whose_weights_cannot_be_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # An address nobody listens at, so that it fails where there is a network, too.
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    # What opens addresses for the whole process is made at its first use, and keeps the proxies of that moment.
    monkeypatch.setattr(urllib.request, "_opener", None)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    shapes(tmp_path / "photos")
    with warnings.catch_warnings():
        assert main(["train", "image", "photos", "--base", "MobileNetV2"]) == 2
    error = capsys.readouterr().err
    assert "--weights" in error
    assert error.count("\n") == 1


def _with_weights(base: str, path: Path) -> None:
    made = getattr(keras.applications, base)(
        include_top=False, weights=None, input_shape=(32, 32, 3), pooling="avg"
    )
    made.save_weights(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--base", "Nothing"], "--base 'Nothing' is not a model in keras.applications; the models are "),
        (["--base", "MobilNetv2"], "did you mean 'MobileNetV2'?"),
        (["--base", "mobilenet"], "did you mean 'MobileNet'?"),
        (["--base", "MobileNet", "--weights", "gone.h5"], "there is no file gone.h5"),
        (
            ["--base", "MobileNet", "--weights", "other.weights.h5"],
            "are not weights of MobileNet without its top (",
        ),
        (
            ["--base", "MobileNet", "--weights", "bad.weights.h5"],
            "are not weights of MobileNet without its top (",
        ),
        (
            ["--base", "MobileNet", "--weights", "good.weights.h5", "--size", "16x16"],
            "MobileNet takes no images of 16 x 16 (Input size must be at least 32x32",
        ),
        (["--augment", "flipp"], "augment: 'flipp' is not one of flip,"),
        (["--augment", "hue"], "grayscale images do not have: leave it out"),
    ],
)
def test_a_request_for_images_that_makes_no_sense(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shapes(tmp_path / "photos", each=12)
    if "other.weights.h5" in words:
        _with_weights("MobileNetV2", tmp_path / "other.weights.h5")
    if "good.weights.h5" in words:
        _with_weights("MobileNet", tmp_path / "good.weights.h5")
    (tmp_path / "bad.weights.h5").write_bytes(b"no weights")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["train", "image", "photos", *words]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (None, {}, "data must be the path of a file or a folder, or a glob, not NoneType"),
        (["photos"], {}, "not list"),
        (b"photos", {}, "not bytes"),
        ("\udcff", {}, "not UTF-8: rename it"),
        ("photos", {"size": (0, 5)}, r"size=\(0, 5\) must be \(height, width\)"),
        ("photos", {"size": (-3, 5)}, r"size=\(-3, 5\) must be \(height, width\)"),
        ("photos", {"size": 64}, r"^size=64 must be \(height, width\)"),
        ("photos", {"augment": "flip"}, r"augment='flip' must be a list"),
    ],
)
def test_arguments_that_are_no_path_and_no_size(
    data: Any, options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    shapes(tmp_path / "photos", each=12)
    with pytest.raises(ArgumentError, match=said):
        stoker.recipes.image(data, **options)
    assert not (tmp_path / "runs").exists()


def test_texts_among_numbers_are_taken_as_missing_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{n * 37 % 61},{n * 17 % 101}.5" for n in range(100)]
    rows[3], rows[40], rows[41] = "?,1.5", "n.a.,2.5", "?,3.5"
    (tmp_path / "data.csv").write_text("\n".join(["a,y", *rows]))
    asked = ["train", "table", "data.csv", "--target", "y", "--eject", "mine.py", "--strict"]
    assert main(asked) == 2
    message = capsys.readouterr().err
    assert "row 4: '?' in column a is not a number, as most of its values are (3 such cells)" in message
    assert "take them as missing with --missing '?,n.a.'" in message
    assert main([*asked, "--missing", "?,n.a."]) == 0
    assert "missing=('?', 'n.a.')" in (tmp_path / "mine.py").read_text().replace('"', "'")


def test_a_remedy_can_be_pasted_in_a_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{n}.5,{n if n % 4 else 'on request'}\n" for n in range(60))
    for name in ("net rent (€)", "owner's rent"):
        (tmp_path / "data.csv").write_text(f"a,{name}\n{rows}")
        assert main(["train", "table", "data.csv", "--target", name]) == 2
        error = capsys.readouterr().err
        assert error.endswith(f"read it with --types {shlex.quote(f'{name}=number')}\n")
        asked = shlex.split(error.partition("read it with ")[2])
        assert (
            main(["train", "table", "data.csv", "--target", name, *asked, "--eject", "a.py", "--force"]) == 0
        )


def test_prices_in_two_currencies_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [f"{n} {('EUR', '€', 'CHF')[n % 3]}" if n % 30 else "unknown price" for n in range(90)]
    (tmp_path / "data.csv").write_text("a,y\n" + "".join(f"{n % 7}.5,{one}\n" for n, one in enumerate(cells)))
    assert main(["train", "table", "data.csv", "--target", "y"]) == 2
    said = (
        "as each needs two rows: its numbers have different units: 57 in €, 30 in CHF; convert them to one\n"
    )
    assert said in capsys.readouterr().err
