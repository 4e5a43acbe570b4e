"""Data that a model's own `fit` made of arrays: prepared once and kept in memory, if it is the same in every epoch."""

from __future__ import annotations

from collections.abc import Mapping

import tensorflow as tf

from stoker.tf_internals.types import Data
from stoker.train.execution.feeding import memory

REASON = "the prepared data is kept in memory"


def kept_in_memory(x: Data, original: Mapping[str, object] | None) -> tf.data.Dataset | None:
    """The pipeline with a cache behind the last stage that is sure to give the same in every epoch.

    Args:
        x: what the model's own `fit` passes on.
        original: what it was given, by name.

    Returns:
        None where nothing is to be gained, or where it cannot be proven that not a bit changes.
    """
    made_here = original is not None and not isinstance(original.get("x"), tf.data.Dataset)
    if not made_here or not isinstance(x, tf.data.Dataset) or int(x.cardinality()) < 0:
        return None
    # The tuner is needed only here, and where it is asked for.
    from stoker.data.tuning.changes import Change, Request, caching
    from stoker.data.tuning.rebuilding import CannotRebuild

    try:
        proposals = list(caching.proposals(x, Request(memory.room_for_data())))
    except CannotRebuild:
        return None
    return next((one.pipeline for one in proposals if isinstance(one, Change)), None)
