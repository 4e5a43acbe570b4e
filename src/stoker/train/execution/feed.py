"""A feed: where batch `i` of a pass over the data comes from, inside the graph.

A feed has two halves: `operands()` are tensors or iterators handed to the compiled call, and `batch(operands, index)`
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
    """The state of Python's and NumPy's global generators, from which a pipeline may draw on the host."""

    python: tuple[object, ...]
    numpy: Any


def host_random_state() -> HostRandomState:
    return {"python": random.getstate(), "numpy": np.random.get_state()}


def restore_host_random_state(state: HostRandomState) -> None:
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])


class FeedPosition(TypedDict, total=False):
    """The place of a feed, as a checkpoint keeps it; each kind of feed has some of these fields."""

    epoch: int
    seed: int
    taken: int
    random: HostRandomState
    order_version: int


class BatchFeed:
    """The data as batches, pass after pass."""

    steps: int | None
    """Batches in a pass; None if the end of the data is not known in advance."""
    kind: str
    """"resident" or "streamed"."""

    @property
    def is_counted(self) -> bool:
        """Whether there are certainly `steps` batches. If not, the loop asks for each batch before it uses it."""
        return self.steps is not None

    def begin_epoch(self, epoch: int) -> None:
        """Start pass number `epoch`, with a new order and a new iterator."""
        raise NotImplementedError

    def operands(self) -> Nest:
        """Return the arguments of the compiled call: tensors, or an iterator."""
        raise NotImplementedError

    def operand_specs(self) -> Nest:
        """Return the specs to trace with in place of `operands()`, if the loop accepts more than those; else None."""
        return None

    def batch(self, operands: Nest, index: tf.Tensor, *, whole: bool = True) -> Nest:
        """In the graph, return batch `index` of this pass; `whole` means that it is as long as the others."""
        raise NotImplementedError

    def tail(self, operands: Nest) -> Nest:
        """In the graph, return the last batch, if its shape differs from that of the others."""
        raise NotImplementedError

    def spec(self) -> Nest:
        """Return the structure of a batch, as `tf.TensorSpec`s."""
        raise NotImplementedError

    @property
    def full_steps(self) -> int | None:
        """The number of batches that `batch` gives. If `steps` is larger, one more (`tail`) follows."""
        return self.steps

    def signature(self) -> Hashable:
        """Return a hashable signature. Two feeds with equal signatures can share one compiled loop."""
        raise NotImplementedError

    @property
    def shapes(self) -> InnerShapes | None:
        """The inner shapes of its data, if feeds with one signature may differ in them; otherwise None."""
        return None

    def widen(self, shapes: InnerShapes) -> None:
        """Make traces accept these shapes as well as the feed's own, for a feed that has `shapes`."""
        raise NotImplementedError

    def position(self) -> FeedPosition:
        """Return the place of the pass."""
        raise NotImplementedError

    def seek(self, position: FeedPosition, blob: bytes | None = None) -> None:
        """Go to where `position` was taken; `blob` is the iterator's own state, if there is one."""
        raise NotImplementedError

    def reseed(self, salt: int) -> None:
        """Use another order from now on, unless the user's pipeline has an order of its own."""

    def close(self) -> None:
        """Release data and threads after the last pass."""


def replace_optionals(batch: Nest) -> Nest:
    """Replace empty optionals with None. A generator's missing parts arrive as empty optionals."""
    kinds = (tf.experimental.Optional, tf.OptionalSpec)
    return keras.tree.map_structure(lambda leaf: None if isinstance(leaf, kinds) else leaf, batch)
