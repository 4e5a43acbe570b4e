"""Arrays written block by block are what NumPy and TensorFlow see, without a copy, for as long as somebody looks."""

from __future__ import annotations

import gc
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from stoker.data.store import Store, Writer

ml_dtypes = pytest.importorskip("ml_dtypes")
DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64", ml_dtypes.bfloat16)


def written(where: Path | None, **arrays: Any) -> Store:
    writer = Writer(where)
    for name, array in arrays.items():
        writer.append(name, array[:3])
        writer.append(name, array[3:])
    return writer.finish({"rows": 7})


@pytest.mark.tensorflow
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("kept", ["on disk", "in memory"])
def test_a_tensor_has_the_values_of_every_type(dtype: Any, kept: str, tmp_path: Path) -> None:
    values = np.arange(14).reshape(7, 2).astype(dtype)
    store = written(tmp_path / "store" if kept == "on disk" else None, some=values)
    read = tf.function(lambda: store.tensor("some"))
    assert read().dtype == tf.as_dtype(values.dtype)
    np.testing.assert_array_equal(read().numpy(), values)
    np.testing.assert_array_equal(store.array("some"), values)


@pytest.mark.tensorflow
def test_an_array_without_values(tmp_path: Path) -> None:
    store = written(tmp_path / "store", none=np.empty((0, 3), np.float32))
    assert tf.function(lambda: store.tensor("none"))().shape == (0, 3)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_a_tensor_outlives_the_store_and_its_directory(tmp_path: Path) -> None:
    values: Any = np.arange(7, dtype=np.int64)
    store: Store | None = written(tmp_path / "store", some=values)
    assert store is not None
    dataset = tf.data.Dataset.range(7).map(lambda i, store=store: tf.gather(store.tensor("some"), i))
    shutil.rmtree(tmp_path / "store")
    store = None
    gc.collect()
    assert [int(value) for value in dataset] == list(range(7))


@pytest.mark.tensorflow
def test_nothing_is_copied() -> None:
    """Not when the tensor is made and not when a dataset begins: the process grows by far less than the array."""
    big: Any = np.ones((64, 1 << 20), np.uint8)
    store = written(None, some=big)
    size = big.nbytes
    del big
    try:
        # From here on the peak is counted anew.
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pytest.skip("the system does not let a process reset its peak of memory")
    before = _peak()
    dataset = tf.data.Dataset.range(2).map(lambda i: tf.gather(store.tensor("some"), i)[:4])
    for _ in range(2):
        assert sum(1 for _ in dataset) == 2
    assert _peak() - before < size / 2


def _peak() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
