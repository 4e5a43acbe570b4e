"""Compute the answers of a frozen part of a network once for each row instead of once per epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import keras

import stoker
from stoker.tf_internals.types import Callback, Dataset, Model

if TYPE_CHECKING:
    from typing_extensions import Unpack


class BatchOptions(TypedDict, total=False):
    """Options of `stoker.data.arrays`."""

    batch_size: int
    shuffle: bool
    seed: int


def asked_once(
    frozen: Model, dataset: Dataset, progress: Callback, **options: Unpack[BatchOptions]
) -> Dataset:
    """Return the answers of a frozen model for a dataset of `(inputs, labels)`, with the labels.

    Args:
        frozen: a model whose weights do not change.
        dataset: the dataset, which is read once, in the order of its first epoch.
        progress: a callback for each batch, which stops the predictions when its time is up.
        options: the batches of the answers, as `stoker.data.arrays` takes them.

    Returns:
        A `tf.data.Dataset` of `(answers, labels)` in memory.
    """
    label = keras.Input(dataset.element_spec[1].shape[1:], dtype=dataset.element_spec[1].dtype.name)
    both = keras.Model([frozen.input, label], [frozen.output, label])
    # The next pass may have another order, so answers and labels must come from the same pass.
    together = dataset.map(lambda inputs, labels: ((inputs, labels),))
    answers, labels = stoker.predict(both, together, verbose=0, callbacks=[progress])
    return stoker.data.arrays(answers, labels, **options)
