"""Keras' data adapters, which read what `fit`, `evaluate` and `predict` are given."""

from __future__ import annotations

from keras.src.trainers import data_adapters
from keras.src.trainers.data_adapters import array_slicing
from keras.src.trainers.data_adapters.array_data_adapter import ArrayDataAdapter, can_convert_arrays
from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter

from stoker.tf_internals.types import Data, DataAdapter, Dataset, Nest


def adapter_for(x: Data, **options: object) -> DataAdapter:
    """The adapter that reads the data as `model.fit` would, or refuses it with the same message.

    It has `get_tf_dataset()`, `num_batches`, `batch_size`, `on_epoch_begin()` and `on_epoch_end()`.

    Args:
        x: as `fit` takes it.
        options: `y`, `sample_weight`, `batch_size`, `steps_per_epoch`, `shuffle`, `class_weight`.
    """
    return data_adapters.get_data_adapter(x, **options)


def array_inputs(adapter: DataAdapter) -> Nest:
    """The arrays in an adapter, in the structure they were given in; None if its data is not arrays."""
    return adapter._inputs if isinstance(adapter, ArrayDataAdapter) else None


def check_arrays(x: Data) -> Nest:
    """Arrays in the structure they were given in, of the same length, or an error of Keras'."""
    return ArrayDataAdapter(x)._inputs


def array_shuffle(adapter: DataAdapter) -> bool | str:
    """How an adapter of arrays shuffles: True, False or "batch"."""
    shuffle: bool | str = adapter._shuffle
    return shuffle


def dataset_in(adapter: DataAdapter) -> Dataset:
    """The dataset that an adapter was given; None if it was given something else."""
    return getattr(adapter, "_dataset", None)


def py_dataset(adapter: DataAdapter) -> Data:
    """The `keras.utils.PyDataset` that an adapter was given; None if it was given something else."""
    return adapter.py_dataset if isinstance(adapter, PyDatasetAdapter) else None


def is_arrays(x: Data) -> bool:
    """Whether Keras takes it for arrays, rather than for a dataset or generator."""
    return bool(can_convert_arrays((x,)))


def to_sliceable(leaf: Data) -> Data:
    """An array or tensor as Keras slices it: floats as `floatx`, frames as arrays; sparse ones as `tf.SparseTensor`."""
    converted = array_slicing.convert_to_sliceable(leaf, target_backend="tensorflow")
    return converted.sparse if isinstance(converted, array_slicing.TensorflowSparseWrapper) else converted


def split_for_validation(arrays: Data, share: float) -> tuple[Data, Data]:
    """The arrays without the last `share` of their rows, and these."""
    training, validation = array_slicing.train_validation_split(arrays, validation_split=share)
    return training, validation
