"""A bundle's description and hashes, without TensorFlow."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker.serve import bundle, examples
from stoker.serve.signature import Field, Signature, arguments, identifiers


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "saved_model").mkdir()
    (tmp_path / "saved_model" / "saved_model.pb").write_bytes(b"graph")
    signature = Signature(
        (Field("my input", "float32", (None, 3), "my_input"),), (Field("y", "int64", (), "y"),)
    )
    description = {
        "schema": 1, "version": 7, "created": "now", "signature": signature.to_json(), "labels": ["a", "b"],
        "files": bundle.hashes(tmp_path),
    }  # fmt: skip
    (tmp_path / "bundle.json").write_text(json.dumps(description))
    return tmp_path


def test_it_reads_what_was_written(made: Path) -> None:
    found = bundle.read(made)
    assert found.signature.inputs[0] == Field("my input", "float32", (None, 3), "my_input")
    assert (found.version, found.labels, found.bytes) == (7, ("a", "b"), 5)
    bundle.check_files(found)


def test_changed_files_are_named(made: Path) -> None:
    found = bundle.read(made)
    file = made / "saved_model" / "saved_model.pb"
    file.write_bytes(b"grapH")
    with pytest.raises(bundle.BundleError, match=r"saved_model/saved_model\.pb is not what was exported"):
        bundle.check_files(found)
    file.unlink()
    with pytest.raises(bundle.BundleError, match="is missing"):
        bundle.check_files(found)
    file.write_bytes(b"graph")
    (made / "more").write_text("")
    with pytest.raises(bundle.BundleError, match="more was not exported with it"):
        bundle.check_files(found)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{", "cannot be read"),
        ("[]", "it has no schema"),
        ('{"schema": 9}', "has schema 9; this Stoker reads schema 1"),
        ('{"schema": 1}', "is damaged: KeyError"),
        ('{"schema": 1, "signature": {"inputs": [{"shape": []}], "outputs": []}}', "is damaged"),
    ],
)
def test_a_damaged_description_is_one_line(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "bundle.json").write_text(text)
    with pytest.raises(bundle.BundleError, match=line) as caught:
        bundle.read(tmp_path)
    assert "\n" not in str(caught.value)


def test_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(bundle.BundleError, match=r"it has no bundle\.json"):
        bundle.read(tmp_path)
    with pytest.raises(bundle.BundleError, match="there is no such directory"):
        bundle.read(tmp_path / "none")


def test_identifiers_are_valid_and_different() -> None:
    names = ["age", "my col", "my-col", "class", "1st", "self", "größe", ""]
    found = identifiers(names)
    assert found == ["age", "my_col", "my_col_2", "_class", "_1st", "_self", "gr__e", "_"]
    assert all(one.isidentifier() for one in found)


def test_arguments_are_names_of_nodes_too() -> None:
    names = ["é", "名前", " a ", "_x", "%", "", "x", "X", "x_2", "class", "1st", "self", "my col", "my-col"]
    found = arguments(names)
    assert all(one.isidentifier() and one[0] != "_" for one in found)
    # TensorFlow takes `x` and `X` for one name.
    assert len({one.lower() for one in found}) == len(names)
    assert found[6:9] == ["x", "X_2", "x_2_2"]
    good = ["age", "Size", "größe", "my col", "my_col", "a_"]
    assert arguments(good) == identifiers(good)


def test_examples_come_back_as_they_were(tmp_path: Path) -> None:
    texts: Any = np.array([[b"a\0", b""], ["größe", b"\xff"]], object)
    numbers = np.array([[1.5, np.nan]], np.float32)
    examples.write(tmp_path / "e.npz", {"a/b": texts, "n": numbers}, {"n": np.array([True])})
    inputs, answers = examples.read(tmp_path / "e.npz")
    assert inputs["a/b"].tolist() == [[b"a\0", b""], ["größe".encode(), b"\xff"]]
    assert np.array_equal(inputs["n"], numbers, equal_nan=True)
    assert answers["n"].dtype == bool
    (tmp_path / "e.npz").write_bytes(b"PK\3\4nothing")
    with pytest.raises(ValueError, match="zip"):
        examples.read(tmp_path / "e.npz")


def seal(made: Path) -> bundle.Bundle:
    description = json.loads((made / "bundle.json").read_text())
    description["seal"] = {"sha256": bundle.digest(description)}
    (made / "bundle.json").write_text(json.dumps(description))
    return bundle.read(made)


def test_a_seal_covers_the_labels_and_the_hashes(made: Path) -> None:
    assert not bundle.read(made).sealed
    assert "no hash covers its labels" in bundle.read(made).note
    assert seal(made).note == ""
    text = (made / "bundle.json").read_text()
    for old, new in (('["a", "b"]', '["b", "a"]'), ("my input", "your input"), ('"bytes": 5', '"bytes": 6')):
        assert old in text
        (made / "bundle.json").write_text(text.replace(old, new))
        with pytest.raises(bundle.BundleError, match=r"bundle\.json is not what was exported"):
            bundle.read(made)


@pytest.mark.parametrize(
    "change",
    [
        {"labels": "ab"},
        {"labels": [1, 2]},
        {"version": float("inf")},
        {"version": -1},
        {"weights": []},
        {"engines": {"torch": {}}},
        {"files": {"a": {"bytes": -5}}},
        {"files": []},
        {"seal": 7},
        {"seal": {}},
        {"signature": {"inputs": [], "outputs": []}},
        {"signature": {"inputs": [{"name": 7, "dtype": "f", "shape": [], "tensor": "x"}], "outputs": []}},
    ],
)
def test_values_that_make_no_sense_are_one_line(made: Path, change: dict[str, Any]) -> None:
    description = json.loads((made / "bundle.json").read_text())
    (made / "bundle.json").write_text(json.dumps({**description, **change}))
    with pytest.raises(bundle.BundleError) as caught:
        bundle.read(made)
    assert "\n" not in str(caught.value)


def test_deep_nesting_is_one_line(made: Path) -> None:
    for text in ("[" * 200_000, '{"a":' * 200_000):
        (made / "bundle.json").write_text(text)
        with pytest.raises(bundle.BundleError, match="nested too deeply"):
            bundle.read(made)


def stored(path: Path, name: str, content: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return path


def header(shape: str, dtype: str = "<f4") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def test_examples_that_lie_are_refused_and_nothing_is_allocated_for_them(tmp_path: Path) -> None:
    file, name = tmp_path / "e.npz", "input/x/values.npy"
    odd = {
        header("(1099511627776,)"): "does not hold as many bytes",
        header("(-4, -4)") + bytes(64): "does not hold as many bytes",
        header("(4,)", "|O") + bytes(32): "which no example has",
        header("(4,)", "|V0"): "which no example has",
        header("(" * 200 + ")" * 200): r"\w",
        b"no array": r"\w",
        b"": r"\w",
    }
    for content, line in odd.items():
        with pytest.raises(ValueError, match=line):
            examples.read(stored(file, name, content))
    with pytest.raises(ValueError, match="it would grow to"):
        examples.read(stored(file, name, bytes((1 << 30) + 1)))
    for other in ("values.npy", "other/x/values.npy", "input/x/bytes.npy"):
        with pytest.raises(ValueError, match=r"\w"):
            examples.read(stored(file, other, header("(0,)")))
