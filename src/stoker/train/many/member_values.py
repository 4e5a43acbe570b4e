"""A value of a step for all members of a group: one tensor for all, a stack of theirs, or one tensor for each."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from stoker.tf_internals.types import Tensor


class MemberValue:
    """The value in the form in which it came, and in the other forms once they were asked for."""

    def __init__(
        self,
        count: int,
        *,
        shared: Tensor = None,
        stacked: Tensor = None,
        separate: Sequence[Tensor] | None = None,
    ) -> None:
        self.count = count
        self.shared = shared
        self._stacked = stacked
        self._separate = None if separate is None else list(separate)

    @property
    def is_shared(self) -> bool:
        return self.shared is not None

    @property
    def rank(self) -> int | None:
        """The rank of one member's value."""
        if self.is_shared:
            rank = self.shared.shape.rank
        elif self._separate is not None:
            rank = self._separate[0].shape.rank
        else:
            whole = self._stacked.shape.rank
            rank = None if whole is None else whole - 1
        return None if rank is None else int(rank)

    @property
    def shape(self) -> tf.TensorShape:
        """The shape of one member's value."""
        if self.is_shared:
            return self.shared.shape
        return self._separate[0].shape if self._separate is not None else self._stacked.shape[1:]

    @property
    def size(self) -> int:
        """The number of elements of one member's value, without open dimensions."""
        return math.prod(one or 1 for one in self.shape.as_list()) if self.rank is not None else 1

    def stack(self) -> Tensor:
        """Return the members' values, stacked along the first axis."""
        if self._stacked is None:
            self._stacked = tf.stack(self.split())
        return self._stacked

    def split(self) -> list[Tensor]:
        """Return each member's value."""
        if self.is_shared:
            return [self.shared] * self.count
        if self._separate is None:
            self._separate = tf.unstack(self._stacked, num=self.count)
        return self._separate

    def align(self, rank: int) -> Tensor:
        """Return the stack, or the shared value, in a shape that broadcasts with members' values of this rank."""
        if self.is_shared:
            return self.shared
        whole, own = self.stack(), self.rank
        assert own is not None
        if own == rank:
            return whole
        sizes = whole.shape.as_list()
        shape = [sizes[0]] + [1] * (rank - own) + [-1 if size is None else size for size in sizes[1:]]
        if shape.count(-1) > 1:
            known = tf.shape(whole)
            return tf.reshape(whole, tf.concat([known[:1], [1] * (rank - own), known[1:]], 0))
        return tf.reshape(whole, shape)
