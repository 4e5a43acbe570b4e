"""A feed: where batch `i` of a pass over the data comes from, inside the graph.

A feed is split in two: `operands()` are tensors or iterators handed to the compiled call, `batch(operands, index)`
is traced into it. So one compiled loop serves every feed of the same shape, and data is never baked into a graph.
"""

from __future__ import annotations

import random
from collections.abc import Hashable
from typing import Any, TypedDict

import keras
import numpy as np
import tensorflow as tf

from stoker.tf_internals.types import Nest
from stoker.train.execution.batch_function import InnerShapes


class HostRandomState(TypedDict):
    """Where Python's and NumPy's global generators are: a pipeline may draw from them on the host."""

    python: tuple[object, ...]
    numpy: Any


def host_random_state() -> HostRandomState:
    return {"python": random.getstate(), "numpy": np.random.get_state()}


def restore_host_random_state(state: HostRandomState) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])


class FeedPosition(TypedDict, total=False):
    """Where a feed is, as a checkpoint keeps it; each kind of feed has some of these."""

    epoch: int
    seed: int
    taken: int
    random: HostRandomState
    order_version: int


class BatchFeed:
    """One pass over the data after another, as batches."""

    steps: int | None
    """Batches in a pass; None when only running out of data tells."""
    kind: str
    """"resident" or "streamed"."""

    @property
    def is_counted(self) -> bool:
        """Whether there are `steps` batches for certain; if not, each is asked for before it is used."""
        return self.steps is not None

    def begin_epoch(self, epoch: int) -> None:
        """Start pass number `epoch`: a new order, a new iterator."""
        raise NotImplementedError

    def operands(self) -> Nest:
        """What the compiled call gets: tensors, or an iterator."""
        raise NotImplementedError

    def operand_specs(self) -> Nest:
        """The specs to trace with in place of `operands()`, if the loop accepts more than these; otherwise None."""
        return None

    def batch(self, operands: Nest, index: tf.Tensor, *, whole: bool = True) -> Nest:
        """In graph: batch `index` of this pass; `whole`: it is as long as the others."""
        raise NotImplementedError

    def tail(self, operands: Nest) -> Nest:
        """In graph: the last batch, when its shape differs from the others'."""
        raise NotImplementedError

    def spec(self) -> Nest:
        """The structure of a batch, as `tf.TensorSpec`s."""
        raise NotImplementedError

    @property
    def full_steps(self) -> int | None:
        """How many batches `batch` gives; one more (`tail`) follows if `steps` is larger."""
        return self.steps

    def signature(self) -> Hashable:
        """Hashable: two feeds with equal signatures can share one compiled loop."""
        raise NotImplementedError

    @property
    def shapes(self) -> InnerShapes | None:
        """The shapes it was made for, if feeds of one signature may differ in them; otherwise None."""
        return None

    def widen(self, shapes: InnerShapes) -> None:
        """Have what is traced take these shapes as well as its own, for a feed that has `shapes`."""
        raise NotImplementedError

    def position(self) -> FeedPosition:
        """Where the pass is."""
        raise NotImplementedError

    def seek(self, position: FeedPosition, blob: bytes | None = None) -> None:
        """Go to where `position` was taken; `blob` is the iterator's own state, where there is one."""
        raise NotImplementedError

    def reseed(self, salt: int) -> None:
        """Use another order from now on, unless the user's pipeline has its own."""

    def close(self) -> None:
        """Release data and threads after the last pass."""


def replace_optionals(batch: Nest) -> Nest:
    """A generator's missing parts arrive as empty optionals: the step gets None."""
    kinds = (tf.experimental.Optional, tf.OptionalSpec)
    return keras.tree.map_structure(lambda leaf: None if isinstance(leaf, kinds) else leaf, batch)
