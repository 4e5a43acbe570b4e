"""The workers of a job, as one of them sees it: who they are, what all agree on, what the chief tells the others."""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensorflow as tf

from stoker.tf_internals import distribution
from stoker.tf_internals.types import Nest, Strategy, Tensor, TensorLike, Variable
from stoker.train.workers.packs import summed
from stoker.train.workers.patience import Patience

_PREFIX = "stoker"


class Group:
    """One process alone: it agrees with itself. `Workers` are several."""

    rank = 0
    count = 1
    replicas = 1
    """Of all workers together."""

    def __init__(self, strategy: Strategy = None) -> None:
        if strategy is not None:
            self.replicas = int(strategy.num_replicas_in_sync)

    @property
    def alone(self) -> bool:
        return self.count == 1

    @property
    def chief(self) -> bool:
        """Whether this is the worker that alone writes what all share."""
        return self.rank == 0

    @property
    def first_replica(self) -> int:
        """The number of this process' first replica among those of all."""
        return self.rank * (self.replicas // self.count)

    def agree(self, **values: float) -> dict[str, list[float]]:
        """What each worker says, by rank: all of them call this at the same place and get the same answer."""
        return {name: [float(value)] for name, value in values.items()}

    def fewest(self, steps: int) -> int:
        """Of the steps that each worker would run next, what all of them run."""
        return int(min(self.agree(steps=steps)["steps"]))

    def told(self, value: Callable[[], Any]) -> Any:
        """What the chief says: its `value()`, which must be plain JSON; the others do not compute theirs."""
        return value()

    def broadcast(self, variables: Mapping[str, Variable]) -> None:
        """Give variables the chief's values, on all workers."""

    def everywhere(self, flag: Tensor) -> Tensor:
        """In graph: whether a flag is set on all workers."""
        return flag

    def running(self, steps: int, step_s: float | None) -> AbstractContextManager[None]:
        """Around a call of so many steps, of which one last took so long: a call that takes much longer is ended."""
        return nullcontext()


class Workers(Group):
    """Several processes under a `MultiWorkerMirroredStrategy`."""

    def __init__(self, strategy: Strategy) -> None:
        super().__init__(strategy)
        self.rank, self.count = distribution.rank_and_count(strategy)
        self._strategy = weakref.ref(strategy)
        self._patience = Patience(strategy)
        self._said = 0
        self._gather = tf.function(self._gathered, autograph=False)
        self._send = tf.function(self._sent, autograph=False, reduce_retracing=True)

    def agree(self, **values: float) -> dict[str, list[float]]:
        own = tf.constant([float(value) for value in values.values()], tf.float64)
        with self._patience.agreeing():
            table = self._gather(own).numpy()
        return {name: [float(value) for value in table[:, column]] for column, name in enumerate(values)}

    def told(self, value: Callable[[], Any]) -> Any:
        # Every worker comes here equally often: the number says which message it is.
        self._said += 1
        key = f"{_PREFIX}/{self._said}"
        if self.chief:
            said = json.dumps(value())
            distribution.tell_workers(key, said)
        else:
            said = distribution.hear_worker(key)
        return json.loads(said)

    def broadcast(self, variables: Mapping[str, Variable]) -> None:
        with self._patience.agreeing():
            sent = self._send([_sendable(variable.numpy()) for variable in variables.values()])
        for variable, value in zip(variables.values(), sent, strict=True):
            variable.assign(tf.cast(value, variable.dtype))

    def everywhere(self, flag: Tensor) -> Tensor:
        missing = tf.cast(tf.logical_not(flag), tf.float32)
        return self._summed(lambda first: tf.where(first, missing, 0.0)) == 0

    def running(self, steps: int, step_s: float | None) -> AbstractContextManager[None]:
        return self._patience.running(steps, step_s)

    def _gathered(self, own: Tensor) -> Tensor:
        row = tf.one_hot(self.rank, self.count, dtype=own.dtype)[:, None] * own[None]
        return self._summed(lambda first: tf.where(first, row, tf.zeros_like(row)))

    def _sent(self, held: list[Tensor]) -> Nest:
        chief = tf.constant(self.chief)
        return self._summed(lambda first: [tf.where(first & chief, one, tf.zeros_like(one)) for one in held])

    def _summed(self, part: Callable[[Tensor], Nest]) -> Nest:
        """In graph: the sum of what each worker's first replica gives."""
        strategy = self._strategy()
        assert strategy is not None
        local = self.replicas // self.count

        def on_replica() -> Nest:
            replica = tf.distribute.get_replica_context()
            first = tf.equal(tf.cast(replica.replica_id_in_sync_group, tf.int32) % local, 0)
            parts = part(first)
            return tf.nest.pack_sequence_as(parts, summed(tf.nest.flatten(parts)))

        results = strategy.run(on_replica)
        return tf.nest.map_structure(lambda one: strategy.experimental_local_results(one)[0], results)


def _sendable(value: TensorLike) -> Tensor:
    """Workers can add floats and signed numbers, which hold all others exactly."""
    tensor = tf.convert_to_tensor(value)
    if tensor.dtype.is_floating:
        return tf.cast(tensor, tf.float32) if tensor.dtype.size < 4 else tensor
    return tf.cast(tensor, tf.int64)


_groups: weakref.WeakKeyDictionary[Strategy, Group] = weakref.WeakKeyDictionary()


def replicated(strategy: Strategy) -> bool:
    """Whether a strategy has several replicas, or may have: a job of one worker is one that others left."""
    several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    return several or int(strategy.num_replicas_in_sync) > 1


def group_of(strategy: Strategy) -> Group:
    """The workers of a strategy; one object for each, since messages are numbered."""
    if strategy not in _groups:
        several = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        workers = several and distribution.rank_and_count(strategy)[1] > 1
        _groups[strategy] = Workers(strategy) if workers else Group(strategy)
    return _groups[strategy]
