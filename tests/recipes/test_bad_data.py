"""Data that nobody can learn from: one line, before any training, exit code 2."""

from __future__ import annotations

import urllib.request
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import pytest

import stoker
from stoker.commands import main
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
        (_lines("{n}.5,name {n}"), "different values"),
        (_wide, "10,001 columns"),
        (lambda path: path.write_bytes(bytes(range(256)) * 200), "is not utf8 text"),
        (lambda path: None, "there is no file"),
    ],
    ids=[
        "empty", "header only", "one class", "one number", "target missing", "column missing", "constant column",
        "few rows", "too many classes", "10,000 columns", "binary", "no file",
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
    assert "neither a number nor a class" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--target", "cost"], "cost"),
        (["--target", "price", "--columns", "size,colour"], "colour"),
        (["--target", "town", "--task", "numbers"], "holds text"),
        (["--target", "price", "--time", "soon"], "time='soon'"),
        (["--target", "price", "--epochs", "0"], "--epochs 0"),
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
    assert "column 'outcome' tells the target by itself" in said
    assert "column 'code' tells the target by itself" in said
    assert "column 'amount'" not in said
    program = (tmp_path / "mine.py").read_text()
    assert 'group="who"' in program
    assert 'columns=("amount", "outcome", "code", "y")' in program
    assert main([*asked, "--force", "--time-column", "who"]) == 2
    assert "should hold dates or numbers" in capsys.readouterr().err


def test_the_target_in_another_unit_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["size,cents,price"]
    for n in range(60):
        price = 31 * n % 997 + 0.5
        lines.append(f"{n * 7 % 31}.25,{'' if n % 9 == 4 else round(100 * price)},{price}")
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n")
    assert main(["train", "table", "data.csv", "--target", "price", "--eject", "mine.py"]) == 0
    said = capsys.readouterr().out
    assert "column 'cents' tells the target by itself" in said
    assert "'size'" not in said


def test_another_encoding_is_asked_for_and_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["size,colour", *(f"{n}.5,{'grün' if n % 3 else 'blau'}" for n in range(60))]
    (tmp_path / "data.csv").write_text("\n".join(lines) + "\n", encoding="latin-1")
    asked = ["train", "table", "data.csv", "--target", "colour", "--eject", "mine.py"]
    assert main(asked) == 2
    assert "encoding='latin-1'" in capsys.readouterr().err
    assert main([*asked, "--encoding", "latin-1"]) == 0
    assert 'encoding="latin-1"' in (tmp_path / "mine.py").read_text()
    for file in reviews(tmp_path / "texts").rglob("*.txt"):
        file.write_text(f"{file.read_text()} schön", encoding="latin-1")
    asked = ["train", "text", "texts", "--eject", "mine.py", "--force"]
    assert main(asked) == 2
    assert "encoding='latin-1'" in capsys.readouterr().err
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
        ("text", _everywhere(b"\0" * 99), "000.txt is not utf8 text"),
        ("text", _everywhere(bytes(range(256))), "000.txt is not utf8 text"),
        ("image", _one_class, "'down' in every row"),
        ("image", _everywhere(b""), "000.png cannot be decoded"),
        ("image", _everywhere(bytes(range(256))), "000.png cannot be decoded"),
        ("image", lambda folder: _cut_off(folder / "down" / "007.png"), "007.png cannot be decoded"),
        ("text", lambda folder: (folder / "empty").mkdir(), "data/empty holds no file"),
        ("text", lambda folder: (folder / "bad" / "a.txt").symlink_to("gone"), "a.txt is a link"),
        ("image", lambda folder: (folder / "empty").mkdir(), "data/empty holds no file"),
        ("image", lambda folder: (folder / "down" / "a.png").symlink_to("a.png"), "a.png is a link"),
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
    assert "say --column" in capsys.readouterr().err


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--base", "Nothing"], "base='Nothing' is no model of keras.applications; there are "),
        (["--base", "MobilNetv2"], "did you mean 'MobileNetV2'?"),
        (["--base", "mobilenet"], "did you mean 'MobileNet'?"),
        (["--base", "MobileNet", "--weights", "gone.h5"], "there is no file gone.h5"),
        (
            ["--base", "MobileNet", "--weights", "other.weights.h5"],
            "are no weights of MobileNet without its top (",
        ),
        (
            ["--base", "MobileNet", "--weights", "bad.weights.h5"],
            "are no weights of MobileNet without its top (",
        ),
        (
            ["--base", "MobileNet", "--weights", "good.weights.h5", "--size", "16x16"],
            "MobileNet takes no images of 16 x 16 (Input size must be at least 32x32",
        ),
        (["--augment", "flipp"], "augment: 'flipp' is none of flip,"),
        (["--augment", "hue"], "images in grayscale do not have: leave it out"),
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
        (None, {}, "data=None must be the path of a folder"),
        (["photos"], {}, r"data=\['photos'\] must be the path of a folder"),
        (b"photos", {}, "must be the path of a folder"),
        ("\udcff", {}, "not UTF-8: rename the folder"),
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
