"""Keras' data adapters, which read the data that `fit`, `evaluate` and `predict` are given."""

from __future__ import annotations

from keras.src.trainers import data_adapters
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter, can_convert_arrays
from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter

from stoker.tf_internals.types import Data, DataAdapter, Dataset, Nest


def adapter_for(x: Data, **options: object) -> DataAdapter:
    """Return the adapter that reads the data as `model.fit` would; bad data raises Keras' own error.

    It has `get_tf_dataset()`, `num_batches`, `batch_size`, `on_epoch_begin()` and `on_epoch_end()`.

    Args:
        x: as `fit` takes it.
        options: `y`, `sample_weight`, `batch_size`, `steps_per_epoch`, `shuffle`, `class_weight`.
    """
    return data_adapters.get_data_adapter(x, **options)


def array_inputs(adapter: DataAdapter) -> Nest:
    """Return the arrays in an adapter, in the structure in which they were given; None if its data is not arrays."""
    return adapter._inputs if isinstance(adapter, ArrayDataAdapter) else None


def check_arrays(x: Data) -> Nest:
    """Return arrays in the structure in which they were given. Keras raises an error if their lengths differ."""
    return ArrayDataAdapter(x)._inputs


def array_shuffle(adapter: DataAdapter) -> bool | str:
    """Return how an adapter of arrays shuffles: True, False or "batch"."""
    shuffle: bool | str = adapter._shuffle
    return shuffle


def dataset_in(adapter: DataAdapter) -> Dataset:
    """Return the dataset that an adapter was given; None if it was given something else."""
    return getattr(adapter, "_dataset", None)


def py_dataset(adapter: DataAdapter) -> Data:
    """Return the `keras.utils.PyDataset` that an adapter was given; None if it was given something else."""
    return adapter.py_dataset if isinstance(adapter, PyDatasetAdapter) else None


def is_arrays(x: Data) -> bool:
    """Return whether Keras treats the data as arrays, rather than as a dataset or generator."""
    return bool(can_convert_arrays((x,)))


def to_sliceable(leaf: Data) -> Data:
    """Convert data to what Keras slices: floats to `floatx`, frames to arrays, sparse data to `tf.SparseTensor`."""
    converted = array_slicing.convert_to_sliceable(leaf, target_backend="tensorflow")
    return converted.sparse if isinstance(converted, array_slicing.TensorflowSparseWrapper) else converted


def split_for_validation(arrays: Data, share: float) -> tuple[Data, Data]:
    """Split arrays into those without the last `share` of the rows, and those rows."""
    training, validation = array_slicing.train_validation_split(arrays, validation_split=share)
    return training, validation
