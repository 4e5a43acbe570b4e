"""The frozen part of a network, asked once for each row instead of once an epoch."""

from __future__ import annotations

from typing import Any

import keras

import stoker


def asked_once(frozen: Any, dataset: Any, progress: Any, **options: Any) -> Any:
    """What a model whose weights stay as they are answers for a dataset of `(inputs, labels)`, with the labels.

    Args:
        frozen: the model.
        dataset: its rows are asked for once, in their first order.
        progress: a callback that is told of each batch: it ends this when its time is up.
        options: the batches of the answers, as `stoker.data.arrays` takes them.

    Returns:
        A `tf.data.Dataset` of `(answers, labels)` in memory.
    """
    label = keras.Input(dataset.element_spec[1].shape[1:], dtype=dataset.element_spec[1].dtype.name)
    both = keras.Model([frozen.input, label], [frozen.output, label])
    # The order may be another one in the next pass: an answer and its label are of one pass.
    together = dataset.map(lambda inputs, labels: ((inputs, labels),))
    answers, labels = stoker.predict(both, together, verbose=0, callbacks=[progress])
    return stoker.data.arrays(answers, labels, **options)
