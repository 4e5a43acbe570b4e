"""A saved Keras model that would run code or read other files is refused before Keras sees it, whatever its version."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np
import pytest

from stoker.cli import main
from stoker.serve.safety.keras_files import KerasFileError, check_keras_file


def plain() -> keras.Model:
    inputs = keras.Input((4,), name="numbers")
    word = keras.Input((), dtype="string", name="word")
    x = keras.layers.Dense(3, activation="relu", kernel_regularizer="l2")(inputs)
    x = keras.layers.BatchNormalization()(keras.layers.Dropout(0.5)(x))
    known = keras.layers.StringLookup(vocabulary=["a", "b"], output_mode="one_hot")(word)
    x = keras.ops.tanh(keras.layers.Concatenate()([x, known]))
    model = keras.Model([inputs, word], keras.layers.Dense(1, dtype="mixed_bfloat16")(x))
    model.compile(
        keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.1, 9, 0.9)), "mse", ["mae"]
    )
    return model


def with_code(path: Path) -> keras.Model:
    text = f"open({str(path)!r}, 'w').write('ran')"
    layer = keras.layers.Lambda(eval(f"lambda x: ({text}, x)[1]"), output_shape=(4,), name="shell")
    return keras.Sequential([keras.Input((4,)), layer, keras.layers.Dense(1)])


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    plain().save(tmp_path / "model.keras")
    return tmp_path / "model.keras"


def test_a_plain_model_is_taken(archive: Path, tmp_path: Path) -> None:
    check_keras_file(archive)
    keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)]).save(tmp_path / "model.h5")
    check_keras_file(tmp_path / "model.h5")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_file_that_is_both_is_looked_at_as_both(archive: Path, tmp_path: Path) -> None:
    file = tmp_path / "both.h5"
    with_code(tmp_path / "mark").save(file)
    file.write_bytes(file.read_bytes() + archive.read_bytes())
    assert zipfile.is_zipfile(file)
    with pytest.raises(KerasFileError, match="Lambda 'shell' runs Python code"):
        check_keras_file(file)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("suffix", [".keras", ".h5"])
def test_export_runs_no_code_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    mark, file = tmp_path / "mark", tmp_path / f"old{suffix}"
    with_code(mark).save(file)
    mark.unlink(missing_ok=True)
    assert main(["export", str(file), str(tmp_path / "bundle")]) == 2
    said = capsys.readouterr().err
    assert "cannot be loaded: Lambda 'shell' runs Python code that is stored in the file" in said
    assert said.count("\n") == 1
    assert not mark.exists()
    assert not (tmp_path / "bundle").exists()


def rewrite(archive: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The same archive with another configuration."""
    with zipfile.ZipFile(archive) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    config = json.loads(parts["config.json"])
    change(config)
    parts["config.json"] = json.dumps(config).encode()
    with zipfile.ZipFile(archive, "w") as new:
        for name, data in parts.items():
            new.writestr(name, data)
    return archive


def layer(kind: str, module: str | None = "keras.layers", **config: Any) -> Callable[[dict[str, Any]], None]:
    made = {
        "class_name": kind,
        "module": module,
        "config": {"name": "evil", **config},
        "registered_name": None,
    }
    return lambda whole: whole["config"]["layers"].append(made)


def function(name: str, module: str) -> Callable[[dict[str, Any]], None]:
    made = {"class_name": "function", "module": module, "config": name, "registered_name": name}
    return lambda whole: whole["config"]["layers"][0]["config"].update(activation=made)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (layer("Lambda"), "Lambda 'evil' runs Python code"),
        (layer("TorchModuleWrapper"), "is unpickled"),
        (layer("TFSMLayer", filepath="/tmp/evil"), "loads a SavedModel from elsewhere"),
        (layer("StringLookup", vocabulary="/etc/passwd"), "reads its vocabulary from the file '/etc/passwd'"),
        (layer("TextVectorization", vocabulary="http://evil/"), "reads its vocabulary from the file"),
        (layer("__lambda__", None), "is Python code that is stored in the file"),
        (layer("Popen", "subprocess"), "of the module 'subprocess'"),
        (layer("Mine", "my_package.layers"), "which only the program that made it has"),
        (function("system", "os"), "it needs 'system' of the module 'os'"),
        (function("get_file", "keras.utils"), "of the module 'keras.utils'"),
        (function("enable_unsafe_deserialization", "keras.config"), "of the module 'keras.config'"),
        (
            function("enable_unsafe_deserialization", "keras.src.saving.serialization_lib"),
            "of the module 'keras.src",
        ),
        (function("version", "keras"), "keras.version is not part of a model"),
    ],
)
def test_what_runs_code_or_reads_files_is_refused(
    archive: Path, change: Callable[[dict[str, Any]], None], line: str
) -> None:
    with pytest.raises(KerasFileError, match=line) as refused:
        check_keras_file(rewrite(archive, change))
    assert "\n" not in str(refused.value)


def test_numbers_from_other_files_are_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"0123456789abcdef")
    file = tmp_path / "model.h5"
    keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)]).save(file)
    whole = file.read_bytes()
    with h5py.File(file, "a") as content:
        content.create_dataset("evil", (16,), "u1", external=[(str(secret), 0, 16)])
    with pytest.raises(KerasFileError, match="/evil takes its numbers from another file"):
        check_keras_file(file)
    for link in (h5py.ExternalLink(str(secret), "/"), h5py.SoftLink("/model_weights")):
        file.write_bytes(whole)
        with h5py.File(file, "a") as content:
            content["evil"] = link
        with pytest.raises(KerasFileError, match="evil leads to another place"):
            check_keras_file(file)
    file.write_bytes(whole)
    with h5py.File(file, "a") as content:
        content.create_dataset("evil", (1 << 40,), "f4", chunks=(1 << 20,))
    with pytest.raises(KerasFileError, match=r"/evil claims .* bytes but holds few"):
        check_keras_file(file)


def test_odd_archives_are_one_line(archive: Path, tmp_path: Path) -> None:
    whole = archive.read_bytes()
    with zipfile.ZipFile(archive, "a") as more:
        more.writestr("../../outside", "x")
    with pytest.raises(KerasFileError, match="a path outside of the archive"):
        check_keras_file(archive)
    archive.write_bytes(whole)
    with zipfile.ZipFile(archive, "a") as more:
        more.writestr("model.weights.npz", "pickled")
    with pytest.raises(KerasFileError, match=r"holds 'model\.weights\.npz', which Keras archives never hold"):
        check_keras_file(archive)
    with (
        zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bomb,
        bomb.open("config.json", "w", force_zip64=True) as member,
    ):
        for _ in range(1100):
            member.write(bytes(1 << 20))
    with pytest.raises(KerasFileError, match="it would grow to"):
        check_keras_file(archive)
    odd = {
        b"": "neither a .keras nor an HDF5 file",
        b"no model": "neither a .keras nor an HDF5 file",
        whole[: len(whole) // 2]: "neither a .keras nor an HDF5 file",
    }  # fmt: skip
    for content, line in odd.items():
        archive.write_bytes(content)
        with pytest.raises(KerasFileError, match=line):
            check_keras_file(archive)
    archive.write_bytes(whole)
    deep = b"[" * 200_000
    with zipfile.ZipFile(archive, "w") as changed:
        changed.writestr("config.json", deep)
    with pytest.raises(KerasFileError, match="not JSON, or nested too deeply"):
        check_keras_file(archive)
    with pytest.raises(KerasFileError, match="cannot be read"):
        check_keras_file(tmp_path / "none.keras")
    with h5py.File(tmp_path / "weights.h5", "w") as content:
        content["a"] = np.zeros(3)
    with pytest.raises(KerasFileError, match="only weights"):
        check_keras_file(tmp_path / "weights.h5")


def test_a_keras_with_known_holes_is_refused(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras, "__version__", "3.8.0")
    with pytest.raises(KerasFileError, match=r"Keras 3\.8\.0 .* pip install 'keras>=3\.12\.1'"):
        check_keras_file(archive)
    monkeypatch.setattr(keras, "__version__", "3.12.1")
    check_keras_file(archive)
