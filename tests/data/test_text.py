"""Texts against plain Python, and their ids against the layer itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker.errors import ArgumentError
from tests.data.frames import words

# The readers load it when they are used.
pytestmark = pytest.mark.tensorflow


@pytest.fixture
def reviews(tmp_path: Path) -> tuple[Path, dict[str, int]]:
    """A folder for each class; the classes of all texts."""
    random = np.random.default_rng(0)
    classes = {}
    for number in range(300):
        name = ("bad", "good")[number % 2]
        text = f"{name} film {number} größer\n" + "word " * int(random.integers(1, 60))
        folder = tmp_path / "reviews" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text(text, encoding="utf-8")
        classes[text] = number % 2
    return tmp_path / "reviews", classes


def test_a_folder_for_each_class(reviews: Any) -> None:
    root, classes = reviews
    dataset = stoker.data.text(root, batch_size=32, seed=1)
    found: dict[str, int] = {}
    for texts, labels in dataset:
        found |= dict(zip(words(texts.numpy()), labels.numpy().tolist(), strict=True))
    assert found == classes
    assert dataset.class_names == ["bad", "good"]
    assert dataset.rows == 300


def test_nested_and_hidden_texts(reviews: Any) -> None:
    root, classes = reviews
    first = sorted(path for path in root.iterdir())[0]
    (first / "sub").mkdir()
    moved = sorted(first.glob("*.txt"))[0]
    moved.rename(first / "sub" / moved.name)
    for hidden in (first / ".hidden.txt", first / "._0.txt"):
        hidden.write_bytes(b"\xff\0")
    (root / "__MACOSX").mkdir()
    (root / "__MACOSX" / "0.txt").write_bytes(b"\xff\0")
    assert stoker.data.text(root).rows == len(classes)


def test_a_hidden_folder_makes_no_classes(tmp_path: Path) -> None:
    (tmp_path / "lines" / ".git").mkdir(parents=True)
    (tmp_path / "lines" / "a.txt").write_text("one text\nanother\n")
    assert stoker.data.text(tmp_path / "lines").rows == 2


def test_lines(tmp_path: Path) -> None:
    lines = ["first", "", "drei Bäume", "日本語", "last"]
    (tmp_path / "t.txt").write_text("\n".join(lines), encoding="utf-8")
    dataset = stoker.data.text(tmp_path / "t.txt", batch_size=2, shuffle=False)
    assert [text for batch in dataset for text in words(batch.numpy())] == lines


def test_ids_are_those_of_the_layer_and_padding_is_small(reviews: Any) -> None:
    root, classes = reviews
    train, held_out = stoker.data.text(root, batch_size=8, seed=1, validation_split=0.2, max_tokens=500)
    assert int(train.cardinality()) == 30
    seen = {}
    real = padded = 0
    expected = {tuple(ids[ids != 0]): label for ids, label in _vectorised(train.vectorization, classes)}
    for _ in range(2):
        for ids, labels in train:
            for row, label in zip(ids.numpy(), labels.numpy(), strict=True):
                seen[tuple(row[row != 0])] = label
            real += int((ids.numpy() != 0).sum())
            padded += ids.numpy().size
    held = {tuple(row[row != 0]) for ids, _ in held_out for row in ids.numpy()}
    assert seen == {key: label for key, label in expected.items() if key not in held}
    assert padded / real < 1.3
    vocabulary = train.vectorization.get_vocabulary()
    assert "word" in vocabulary


def _vectorised(layer: Any, classes: dict[str, int]) -> list[tuple[Any, int]]:
    return [(layer([text]).numpy()[0], label) for text, label in classes.items()]


def test_passes_differ_and_repeat(reviews: Any) -> None:
    root, _ = reviews

    def passes() -> list[list[int]]:
        dataset = stoker.data.text(root, batch_size=8, seed=5, max_tokens=500)
        return [[int(ids.numpy().sum()) for ids, _ in dataset] for _ in range(2)]

    first, second = passes()
    assert first != second
    assert passes() == [first, second]


def test_words_are_split_once_and_cut_where_asked(reviews: Any, cache_directory: Path) -> None:
    root, _ = reviews

    def read(**options: Any) -> Any:
        return stoker.data.text(root, batch_size=50, shuffle=False, max_tokens=100, **options)

    first = read()
    written = {path: path.stat().st_mtime_ns for path in cache_directory.rglob("ids.bin")}
    again = read()
    assert len(written) == 1
    assert {path: path.stat().st_mtime_ns for path in cache_directory.rglob("ids.bin")} == written
    assert again.vectorization.get_vocabulary() == first.vectorization.get_vocabulary()
    for (ids, labels), (same, same_labels), (cut, _) in zip(first, again, read(max_length=5), strict=True):
        assert np.array_equal(ids, same)
        assert np.array_equal(labels, same_labels)
        assert np.array_equal(cut, ids[:, :5])
    # Another split has another vocabulary.
    read(validation_split=0.5)
    assert len(list(cache_directory.rglob("ids.bin"))) == 2
    # So have two that list their rows.
    read(validation_split=(0.3, 0.3))
    read(validation_split=(0.4, 0.2))
    read(validation_split=(0.5, 0.2))
    assert len(list(cache_directory.rglob("ids.bin"))) == 4


def test_the_vocabulary_is_the_one_the_layer_adapts_to(tmp_path: Path) -> None:
    import keras

    random = np.random.default_rng(3)
    spellings = ["Ähre", "don't", "x-y", "日本", "naïve,", "UP", "up"]
    lines = [" ".join(random.choice(spellings, random.integers(0, 9))) for _ in range(3000)]
    (tmp_path / "t.txt").write_text("\n".join(lines), encoding="utf-8")
    train, _ = stoker.data.text(tmp_path / "t.txt", shuffle=False, validation_split=0.4, max_tokens=6)
    layer = keras.layers.TextVectorization(max_tokens=6)
    texts, _ = stoker.data.text(tmp_path / "t.txt", shuffle=False, validation_split=0.4)
    layer.adapt(texts)
    assert train.vectorization.get_vocabulary() == layer.get_vocabulary()

    def rows(batches: Any) -> list[list[int]]:
        return sorted([number for number in row if number] for ids in batches for row in ids.numpy().tolist())

    assert rows(train) == rows(map(layer, texts))


def test_texts_without_words(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("a b\n\n\nb\n")
    batches = list(stoker.data.text(tmp_path / "some.txt", max_tokens=9, batch_size=2, shuffle=False))
    assert [batch.shape.as_list() for batch in batches] == [[2, 0], [2, 2]]
    (tmp_path / "none.txt").write_text("\n\n\n")
    with pytest.raises(ArgumentError, match="3 training texts without words"):
        stoker.data.text(tmp_path / "none.txt", max_tokens=9)
    with pytest.raises(ArgumentError, match="max_tokens='many' must be a whole number"):
        stoker.data.text(tmp_path / "some.txt", max_tokens="many")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="max_length=0 must be at least 1"):
        stoker.data.text(tmp_path / "some.txt", max_tokens=9, max_length=0)


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="there is no file or folder"):
        stoker.data.text(tmp_path / "none")
    (tmp_path / "root" / "empty").mkdir(parents=True)
    with pytest.raises(ArgumentError, match=r"empty holds no file that ends in \.txt"):
        stoker.data.text(tmp_path / "root")
    (tmp_path / "t.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ArgumentError, match="is not UTF-8 text"):
        stoker.data.text(tmp_path / "t.txt")


@pytest.mark.parametrize("mark", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("encoding", ["utf8", "latin-1"])
def test_a_byte_order_mark_tells_the_encoding(reviews: Any, mark: str, encoding: str) -> None:
    root, _ = reviews
    texts = {path: path.read_bytes().decode(encoding) for path in root.rglob("*.txt")}
    for path in list(texts)[::7]:
        path.write_text(texts[path], encoding=mark)
    read = {text for batch, _ in stoker.data.text(root, encoding=encoding) for text in words(batch.numpy())}
    assert read == set(texts.values())
    lines = root / "lines.txt"
    lines.write_text("größer\nkleiner\n", encoding=mark)
    (batch,) = stoker.data.text(lines, encoding=encoding, shuffle=False)
    assert words(batch.numpy()) == ["größer", "kleiner"]


def test_files_of_another_encoding(reviews: Any) -> None:
    root, _ = reviews
    files = sorted(root.rglob("*.txt"))

    def complain(**options: Any) -> str:
        with pytest.raises(ArgumentError) as caught:
            stoker.data.text(root, **options)
        return str(caught.value)

    files[1].write_text("größer", encoding="latin-1")
    some = "as UTF-8, or give the encoding of all, such as encoding='latin-1'"
    assert complain() == f"{files[1]} is not UTF-8 text (1 of 300 files is not): save it {some}"
    files[2].write_text("größer", encoding="latin-1")
    assert complain() == f"{files[1]} is not UTF-8 text (2 of 300 files are not): save them {some}"
    # Latin-1 text has no NUL; that of UTF-16 without a mark has.
    files[1].write_text("größer", encoding="utf-16-le")
    known = "(1 of 300 files is not): save it as latin-1"
    assert complain(encoding="latin-1") == f"{files[1]} is not latin-1 text {known}"
    for path in files:
        path.write_text("größer", encoding="utf-16-le")
    said = complain(encoding="latin-1")
    assert said == (
        f"{files[0]} is not latin-1 text (none of 300 files is): if it is text, give its encoding, "
        "such as encoding='utf8' or 'utf-16'"
    )
    assert complain(encoding="latin1") == said.replace("latin-1", "latin1")
    assert complain(encoding="klingon") == (
        "encoding='klingon' is not known: give one such as encoding='utf8' or 'latin-1'"
    )


@pytest.fixture
def table(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """Texts and their classes as CSV."""
    rows = {f"größer {number}, said\n{number}": ("bad", "good")[number % 2] for number in range(90)}
    lines = "".join(f'{number},"{text}",{kind}\n' for number, (text, kind) in enumerate(rows.items()))
    (tmp_path / "t.csv").write_text("id,review,verdict\n" + lines, encoding="utf-8")
    return tmp_path / "t.csv", rows


def test_a_column_of_a_table(table: Any) -> None:
    path, rows = table
    dataset = stoker.data.text(path, column="review", label="verdict", batch_size=16, seed=1)
    found: dict[str, str] = {}
    for texts, labels in dataset:
        names = [dataset.class_names[one] for one in labels.numpy()]
        found |= dict(zip(words(texts.numpy()), names, strict=True))
    assert found == rows
    alone = stoker.data.text(path, column="review", shuffle=False)
    assert [text for batch in alone for text in words(batch.numpy())] == list(rows)


def test_a_column_of_other_tables(table: Any, tmp_path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet

    path, rows = table
    options = pyarrow.csv.ParseOptions(newlines_in_values=True)
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(path, parse_options=options), tmp_path / "t.parquet")
    train, held_out = stoker.data.text(
        tmp_path / "t.parquet", column="review", label="id", validation_split=0.2, max_tokens=20, batch_size=6
    )
    assert train.rows + held_out.rows == len(rows)
    labels = sorted(int(one) for part in (train, held_out) for _, label in part for one in label.numpy())
    assert labels == list(range(len(rows)))


def test_columns_that_are_not_there(table: Any) -> None:
    path, _ = table
    with pytest.raises(ArgumentError, match="there is no column 'reviews'; did you mean 'review'"):
        stoker.data.text(path, column="reviews")
    with pytest.raises(ArgumentError, match="label: there is no column 'kind'"):
        stoker.data.text(path, column="review", label="kind")
    with pytest.raises(ArgumentError, match="name that of the texts with column="):
        stoker.data.text(path, label="verdict")
    with pytest.raises(ArgumentError, match="column='review' and label='review' must be different columns"):
        stoker.data.text(path, column="review", label="review")
