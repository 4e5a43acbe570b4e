"""A bundle answers what the model says, for rows in any form, one or many, from many threads."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import stoker
from stoker.errors import ArgumentError
from stoker.serve.engines.choosing import choose_engine
from tests.serve.bundles import LABELS, rows
from tests.serve.forging import reseal
from tests.support import HANGS_S


@pytest.fixture(scope="module")
def bundle(pets: tuple[keras.Model, Path]) -> tuple[keras.Model, Path]:
    return pets


@pytest.fixture(scope="module")
def predictor(bundle: tuple[keras.Model, Path]) -> stoker.Predictor:
    ready = stoker.Predictor(bundle[1])
    ready.warm()
    return ready


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 20_000])
def test_many_rows(bundle: tuple[keras.Model, Path], predictor: stoker.Predictor, count: int) -> None:
    given = rows(count, seed=count)
    found = predictor.predict(given)
    wanted = bundle[0].predict(given, batch_size=count, verbose=0)
    np.testing.assert_allclose(found["output"], wanted, atol=1e-5)
    np.testing.assert_allclose(found["scores"], wanted, atol=1e-5)
    assert found["label"].tolist() == [LABELS[one] for one in found["scores"].argmax(-1)]


def test_one_row_and_the_same_rows_in_other_forms(predictor: stoker.Predictor) -> None:
    pandas = pytest.importorskip("pandas")
    given = rows(6)
    wanted = predictor.predict(given)
    one = predictor.predict({"numbers": given["numbers"][2].tolist(), "width": int(given["width"][2])})
    assert one["label"] == wanted["label"][2]
    np.testing.assert_allclose(one["scores"], wanted["scores"][2], atol=1e-6)
    dicts = [{"numbers": n, "width": w} for n, w in zip(given["numbers"], given["width"], strict=True)]
    frame = pandas.DataFrame({"width": given["width"], "price": 0})
    dataset = tf.data.Dataset.from_tensor_slices((given, np.zeros(6)))
    for other in (dicts, dataset, dataset.batch(4), tf.data.Dataset.from_tensors(given)):
        np.testing.assert_allclose(predictor.predict(other)["scores"], wanted["scores"], atol=1e-6)
    with pytest.raises(ArgumentError, match="the frame has no column 'numbers'"):
        predictor.predict(frame)
    with pytest.raises(ArgumentError, match=r"'width': expected int32, got 1\.5"):
        predictor.predict({"numbers": [1, 2, 3, 4], "width": 1.5})


def test_no_rows(predictor: stoker.Predictor) -> None:
    found = predictor.predict({"numbers": np.zeros((0, 4)), "width": np.zeros(0, int)})
    assert found["scores"].shape == (0, 3)
    assert found["label"].shape == (0,)


def test_all_engines_give_the_same(bundle: tuple[keras.Model, Path]) -> None:
    names = ("session", "threads", "function")
    predictors = [stoker.Predictor(bundle[1], engine=name) for name in names]
    assert tuple(one.engine.name for one in predictors) == names
    for count in (1, 3, 64):
        one, *others = (each.predict(rows(count))["scores"] for each in predictors)
        for other in others:
            np.testing.assert_allclose(one, other, atol=1e-6)
    with pytest.raises(
        stoker.BundleError, match="engine 'quantum' is not one of session, threads, function, xla"
    ):
        choose_engine(predictors[0].bundle, "quantum")


def test_every_thread_gets_its_own_answers(predictor: stoker.Predictor) -> None:
    given = rows(400, seed=9)
    wanted = predictor.predict(given)["scores"]
    wrong: list[int] = []
    done: list[int] = []

    def ask(first: int) -> None:
        for row in range(first, 400, 8):
            size = row % 3 + 1
            part: dict[str, Any] = {name: array[row : row + size] for name, array in given.items()}
            if not np.allclose(predictor.predict(part)["scores"], wanted[row : row + size], atol=1e-5):
                wrong.append(row)
            done.append(row)

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS_S)
    assert len(done) == 400
    assert wrong == []


def test_a_changed_bundle_is_refused(
    bundle: tuple[keras.Model, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    # What is remembered may be an engine whose file is whole.
    monkeypatch.setattr("stoker.serve.engines.choosing.PLANS", tmp_path / "plans")
    copy = shutil.copytree(bundle[1], tmp_path / "copy")
    weights = copy / "saved_model" / "variables" / "variables.data-00000-of-00001"
    data = bytearray(weights.read_bytes())
    data[40] ^= 0x40  # within a weight
    weights.write_bytes(data)
    with pytest.raises(stoker.BundleError, match=r"variables\.data-00000-of-00001 is not what was exported"):
        stoker.Predictor(copy)
    # Also with hashes that fit: TensorFlow has a checksum of its own, and there are the recorded answers.
    reseal(copy)
    with pytest.raises(stoker.BundleError, match=r"cannot be loaded|does not give its recorded answers"):
        stoker.Predictor(copy)
