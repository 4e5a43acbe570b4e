"""The workers of a job from the view of one: who they are, what they agree on, and what the chief tells the others."""

from __future__ import annotations

import json
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensorflow as tf

from stoker.goodput import accounts, journal
from stoker.tf_internals import distribution
from stoker.tf_internals.types import Nest, Strategy, Tensor, TensorLike, Variable
from stoker.train.workers.patience import Patience

# Packs of this size were the fastest for 16 MiB of gradients between processes on one machine.
PACK_BYTES = 4 * 1024 * 1024


def sum_over_replicas(values: Sequence[Tensor]) -> list[Tensor]:
    """On a replica, add up each value over all replicas, in one collective if all values are small and of one type.

    A sum over the workers takes about a millisecond, however small it is, so a step makes one. Large models are cut
    into packs that travel one after the other. All replicas must send the same packs, so the shapes must be known.
    """
    results: list[Tensor] = [None] * len(values)
    by_type: dict[tf.DType, list[int]] = {}
    for index, value in enumerate(values):
        by_type.setdefault(value.dtype, []).append(index)
    for indices in by_type.values():
        flat = tf.concat([tf.reshape(values[index], [-1]) for index in indices], 0)
        whole = tf.concat(_reduce(_cut(flat)), 0)
        sizes = [math.prod(values[index].shape) for index in indices]
        for index, part in zip(indices, tf.split(whole, sizes), strict=True):
            results[index] = tf.reshape(part, values[index].shape)
    return results


def _reduce(packs: list[Tensor]) -> list[Tensor]:
    # Otherwise TensorFlow would join the packs into one again.
    options = tf.distribute.experimental.CommunicationOptions(bytes_per_pack=1)
    replica = tf.distribute.get_replica_context()
    return list(replica.all_reduce(tf.distribute.ReduceOp.SUM, packs, options))


def _cut(flat: Tensor) -> list[Tensor]:
    size = int(flat.shape[0])
    most = PACK_BYTES // flat.dtype.size
    if size <= most:
        return [flat]
    return list(tf.split(flat, [min(most, size - start) for start in range(0, size, most)]))


_PREFIX = "stoker"


class Group:
    """A single process, which agrees with itself; see `Workers` for several."""

    rank = 0
    count = 1
    replicas = 1
    """The replicas of all workers together."""

    def __init__(self, strategy: Strategy = None) -> None:
        if strategy is not None:
            self.replicas = int(strategy.num_replicas_in_sync)

    @property
    def alone(self) -> bool:
        return self.count == 1

    @property
    def chief(self) -> bool:
        """Whether this worker alone writes what all workers share."""
        return self.rank == 0

    @property
    def first_replica(self) -> int:
        """The number of this process's first replica among the replicas of all processes."""
        return self.rank * (self.replicas // self.count)

    def agree(self, **values: float) -> dict[str, list[float]]:
        """Return each worker's values, by rank. All workers call this at the same place and get the same answer."""
        return {name: [float(value)] for name, value in values.items()}

    def agree_on_fewest(self, steps: int) -> int:
        """Return how many steps all workers run next: the fewest that any of them can."""
        return int(min(self.agree(steps=steps)["steps"]))

    def ask_chief(self, value: Callable[[], Any]) -> Any:
        """Return the chief's `value()`, which must be plain JSON, on all workers; the others do not call theirs."""
        return value()

    def broadcast(self, variables: Mapping[str, Variable]) -> None:
        """Give variables the chief's values, on all workers."""

    def is_everywhere(self, flag: Tensor) -> Tensor:
        """In the graph, return whether a flag is set on all workers."""
        return flag

    def watch_call(self, steps: int, step_s: float | None) -> AbstractContextManager[None]:
        """Watch a call of this many steps within a block.

        End the call if it takes much longer than the last step suggests.
        """
        return nullcontext()


class Workers(Group):
    """Several processes under a `MultiWorkerMirroredStrategy`."""

    def __init__(self, strategy: Strategy) -> None:
        super().__init__(strategy)
        self.rank, self.count = distribution.rank_and_count(strategy)
        self._strategy = weakref.ref(strategy)
        self._patience = Patience(strategy)
        self._said = 0
        self._gather = tf.function(self._gather_rows, autograph=False)
        self._send = tf.function(self._send_chief, autograph=False, reduce_retracing=True)

    def agree(self, **values: float) -> dict[str, list[float]]:
        own = tf.constant([float(value) for value in values.values()], tf.float64)
        with journal.waiting(accounts.PEERS), self._patience.watch_agreement():
            table = self._gather(own).numpy()
        return {name: [float(value) for value in table[:, column]] for column, name in enumerate(values)}

    def ask_chief(self, value: Callable[[], Any]) -> Any:
        # All workers call this equally often, so the count identifies the message.
        self._said += 1
        key = f"{_PREFIX}/{self._said}"
        if self.chief:
            said = json.dumps(value())
            distribution.tell_workers(key, said)
        else:
            with journal.waiting(accounts.PEERS):
                said = distribution.hear_worker(key)
        return json.loads(said)

    def broadcast(self, variables: Mapping[str, Variable]) -> None:
        with journal.waiting(accounts.PEERS), self._patience.watch_agreement():
            sent = self._send([_convert_to_send(variable.numpy()) for variable in variables.values()])
        for variable, value in zip(variables.values(), sent, strict=True):
            variable.assign(tf.cast(value, variable.dtype))

    def is_everywhere(self, flag: Tensor) -> Tensor:
        missing = tf.cast(tf.logical_not(flag), tf.float32)
        return self._sum_first(lambda first: tf.where(first, missing, 0.0)) == 0

    def watch_call(self, steps: int, step_s: float | None) -> AbstractContextManager[None]:
        return self._patience.watch_call(steps, step_s)

    def _gather_rows(self, own: Tensor) -> Tensor:
        row = tf.one_hot(self.rank, self.count, dtype=own.dtype)[:, None] * own[None]
        return self._sum_first(lambda first: tf.where(first, row, tf.zeros_like(row)))

    def _send_chief(self, held: list[Tensor]) -> Nest:
        chief = tf.constant(self.chief)
        return self._sum_first(
            lambda first: [tf.where(first & chief, one, tf.zeros_like(one)) for one in held]
        )

    def _sum_first(self, part: Callable[[Tensor], Nest]) -> Nest:
        """In the graph, sum what each worker's first replica contributes."""
        strategy = self._strategy()
        assert strategy is not None
        local = self.replicas // self.count

        def on_replica() -> Nest:
            replica = tf.distribute.get_replica_context()
            first = tf.equal(tf.cast(replica.replica_id_in_sync_group, tf.int32) % local, 0)
            parts = part(first)
            return tf.nest.pack_sequence_as(parts, sum_over_replicas(tf.nest.flatten(parts)))

        results = strategy.run(on_replica)
        return tf.nest.map_structure(lambda one: strategy.experimental_local_results(one)[0], results)


def _convert_to_send(value: TensorLike) -> Tensor:
    """Convert a value to a type that workers can add: floats and signed integers hold all other types exactly."""
    tensor = tf.convert_to_tensor(value)
    if tensor.dtype.is_floating:
        return tf.cast(tensor, tf.float32) if tensor.dtype.size < 4 else tensor
    return tf.cast(tensor, tf.int64)


_groups: weakref.WeakKeyDictionary[Strategy, Group] = weakref.WeakKeyDictionary()


def is_replicated(strategy: Strategy) -> bool:
    """Return whether a strategy has several replicas, or may have had: in a job of one worker, the others have left."""
    several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    return several or int(strategy.num_replicas_in_sync) > 1


def group_of(strategy: Strategy) -> Group:
    """Return the workers of a strategy; always the same object for it, since messages are numbered."""
    if strategy not in _groups:
        several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        workers = several and distribution.rank_and_count(strategy)[1] > 1
        _groups[strategy] = Workers(strategy) if workers else Group(strategy)
    return _groups[strategy]
