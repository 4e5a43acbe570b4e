"""Keras' data adapters."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from stoker.tf_internals import keras_data

X: Any = np.ones((10, 2))
Y: Any = np.arange(10)


class Rows(keras.utils.PyDataset):
    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return X[:5], Y[:5]


def test_adapter_for_arrays() -> None:
    """`adapter_for`, `array_inputs` and `array_shuffle`."""
    adapter = keras_data.adapter_for(X, y=Y, batch_size=4, shuffle="batch")
    assert (adapter.num_batches, adapter.batch_size) == (3, 4)
    x, y = keras_data.array_inputs(adapter)
    assert x is X
    assert y is Y
    assert keras_data.array_shuffle(adapter) == "batch"
    assert keras_data.dataset_in(adapter) is None
    assert keras_data.py_dataset(adapter) is None
    assert adapter.get_tf_dataset().element_spec[0].shape.as_list() == [None, 2]
    adapter.on_epoch_begin()
    adapter.on_epoch_end()


def test_adapter_for_a_dataset() -> None:
    """`dataset_in`."""
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(5)
    adapter = keras_data.adapter_for(dataset)
    assert keras_data.dataset_in(adapter) is dataset
    assert keras_data.array_inputs(adapter) is None
    assert (adapter.num_batches, int(adapter.batch_size or 5)) == (2, 5)


def test_adapter_for_a_py_dataset() -> None:
    """`py_dataset`."""
    rows = Rows()
    adapter = keras_data.adapter_for(rows)
    assert keras_data.py_dataset(adapter) is rows
    assert adapter.num_batches == 2


def test_adapter_refuses_with_the_words_of_keras() -> None:
    with pytest.raises(ValueError, match="cardinality"):
        keras_data.adapter_for(X, y=Y[:3])


def test_check_arrays() -> None:
    assert keras_data.check_arrays({"a": X})["a"] is X
    with pytest.raises(ValueError, match="cardinality"):
        keras_data.check_arrays([X, Y[:3]])


def test_is_arrays() -> None:
    assert keras_data.is_arrays({"a": X, "b": tf.constant([1])})
    assert not keras_data.is_arrays(Rows())
    assert not keras_data.is_arrays(tf.data.Dataset.range(3))


def test_to_sliceable() -> None:
    assert keras_data.to_sliceable(X).dtype == keras.config.floatx()
    assert keras_data.to_sliceable(Y) is Y
    assert isinstance(keras_data.to_sliceable(tf.sparse.from_dense([[1.0, 0.0]])), tf.SparseTensor)
    assert isinstance(keras_data.to_sliceable(tf.ragged.constant([[1], []])), tf.RaggedTensor)


def test_split_for_validation_takes_the_last_rows() -> None:
    training, validation = keras_data.split_for_validation((X, Y, None), 0.3)
    assert training[1].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert validation[1].tolist() == [7, 8, 9]
    assert training[2] is validation[2] is None


def test_keras_counts_its_public_limits() -> None:
    assert keras.config.max_epochs() is None
    assert keras.config.max_steps_per_epoch() is None
